import pandas as pd
from pydantic import BaseModel


class RewardInfo(BaseModel):
    reward: float
    reward_breakdown: dict = {}

    def to_df(self) -> pd.DataFrame:
        return pd.DataFrame([self.model_dump()])
