from tau2.data_model.tasks import InitialState
from tau2.domains.lending.data_model import HomeDB, LendingDB
from tau2.domains.lending.tools import LendingTools
from tau2.domains.lending.user_tools import HomeTools
from tau2.domains.lending.utils import DB_PATH, EXTRA_PATH, POLICY_PATH, USER_DB_PATH
from tau2.environment.environment import Environment
from tau2.utils import load_file


class LendingEnvironment(Environment):
    def sync_tools(self):
        member = self.user_tools.db.shelf.member_id
        if member is not None:
            self.user_tools.db.shelf.books = list(self.tools.db.members[member].loans)


def get_environment(with_extra: bool = False):
    with open(POLICY_PATH) as file:  # noqa: PTH123 - as the published domains do
        policy = file.read()
    if with_extra:
        policy += str(load_file(EXTRA_PATH))
    tools, home = LendingTools(LendingDB.load(DB_PATH)), HomeTools(HomeDB.load(USER_DB_PATH))
    return LendingEnvironment("lending", policy, tools, home)


def get_tasks():
    return [InitialState.model_validate(task) for task in load_file("tasks.json")]
