from tau2.data_model.message import AssistantMessage
from tau2.data_model.simulation import RewardInfo


class CommunicateEvaluator:
    @classmethod
    def calculate_reward(cls, task, full_trajectory):
        said = [one.content or "" for one in full_trajectory if isinstance(one, AssistantMessage)]
        wanted = task.evaluation_criteria.communicate_info or []
        return RewardInfo(reward=float(all(any(text in one for one in said) for text in wanted)))
