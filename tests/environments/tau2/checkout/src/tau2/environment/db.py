from tau2.utils import load_file
from tau2.utils.pydantic_utils import BaseModelNoExtra


class DB(BaseModelNoExtra):
    @classmethod
    def load(cls, path):
        return cls.model_validate(load_file(path))
