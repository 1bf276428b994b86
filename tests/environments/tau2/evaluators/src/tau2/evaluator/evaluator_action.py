from tau2.data_model.simulation import RewardInfo


class ActionEvaluator:
    @classmethod
    def calculate_reward(cls, task, full_trajectory):
        made = [call for message in full_trajectory for call in getattr(message, "tool_calls", None) or []]
        wanted = task.evaluation_criteria.actions or []
        found = all(any((one.name, one.arguments) == (call.name, call.arguments) for call in made) for one in wanted)
        return RewardInfo(reward=float(found))
