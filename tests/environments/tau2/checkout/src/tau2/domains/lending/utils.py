from tau2.utils.utils import DATA_DIR

FOLDER = DATA_DIR / "tau2" / "domains" / "lending"
DB_PATH = FOLDER / "db.json"
USER_DB_PATH = FOLDER / "user_db.toml"
POLICY_PATH = FOLDER / "policy.md"
EXTRA_PATH = FOLDER / "extra.json"
