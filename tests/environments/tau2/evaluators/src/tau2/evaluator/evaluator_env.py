from tau2.data_model.message import ToolCall
from tau2.data_model.simulation import RewardInfo
from tau2.data_model.tasks import RewardType


class EnvironmentEvaluator:
    @classmethod
    def calculate_reward(cls, environment_constructor, task, full_trajectory):
        criteria, played, gold = task.evaluation_criteria, environment_constructor(), environment_constructor()
        played.set_state(None, None, full_trajectory)
        gold.set_state(None, None, (task.initial_state and task.initial_state.message_history) or [])
        for action in criteria.actions or []:
            gold.get_response(ToolCall(name=action.name, arguments=action.arguments, requestor=action.requestor))
        same = played.get_db_hash() == gold.get_db_hash() and played.get_user_db_hash() == gold.get_user_db_hash()
        held = all(played.tools.db.books[one.book_id].holder == one.holder for one in criteria.env_assertions or [])
        breakdown = {RewardType.DB: float(same), RewardType.ENV_ASSERTION: float(held)}
        wanted = {part: reward for part, reward in breakdown.items() if part in criteria.reward_basis}
        return RewardInfo(reward=min(wanted.values(), default=1.0), reward_breakdown=wanted)
