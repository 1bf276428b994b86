from tau2.data_model.message import ToolMessage


class Environment:
    def __init__(self, domain_name, policy, tools=None, user_tools=None):
        self.policy = policy
        self.tools = tools
        self.user_tools = user_tools
        self.sync_tools()

    def get_policy(self):
        return self.policy

    def sync_tools(self):
        pass

    def set_state(self, initialization_data, initialization_actions, message_history):
        assert initialization_data is None
        assert not initialization_actions
        for message in message_history:
            for call in getattr(message, "tool_calls", None) or []:
                self.get_response(call)
        self.sync_tools()

    def get_response(self, call):
        toolkit = self.user_tools if call.requestor == "user" else self.tools
        try:
            content, error = str(toolkit.use_tool(call.name, **call.arguments)), False
        except Exception as problem:  # noqa: BLE001 - a refusal is an answer
            content, error = f"Error: {problem}", True
        self.sync_tools()
        return ToolMessage(id=call.id, role="tool", content=content, error=error)

    def get_db_hash(self):
        return hash(self.tools.db.model_dump_json())

    def get_user_db_hash(self):
        return hash(self.user_tools.db.model_dump_json())
