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
        assert message_history == []
        for action in initialization_actions or []:
            toolkit = self.user_tools if action["env_type"] == "user" else self.tools
            getattr(toolkit, action["func_name"])(**action["arguments"])
        self.sync_tools()
