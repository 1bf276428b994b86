CREATE TABLE shelves (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE jars (id INTEGER PRIMARY KEY AUTOINCREMENT, shelf_id INTEGER NOT NULL REFERENCES shelves (id), label TEXT NOT NULL);
INSERT INTO shelves (id, name) VALUES (1, 'top'), (2, 'middle'), (3, 'bottom');
INSERT INTO jars (id, shelf_id, label) VALUES (1, 1, 'plum'), (2, 1, 'cherry'), (3, 2, 'quince'), (4, 3, 'honey');
