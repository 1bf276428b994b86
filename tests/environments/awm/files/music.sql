-- Sample data; the last statement is wrong on purpose.
INSERT INTO users (id, username, created_at) VALUES (1, 'me', datetime('now', '-3 days'));
INSERT INTO tracks (id, title, artist, popularity) VALUES
  (1, 'One Day', 'Ada', 3.5),
  (2, 'Two; Nights', 'Bo', NULL),
  (3, 'Day Three', 'Cy', 1);
INSERT INTO playlists (owner_user_id, name) VALUES (1, 'Old');
INSERT INTO playlist_tracks (playlist_id, track_id, position) VALUES (1, 2, 1);
INSERT INTO nowhere VALUES (1);
