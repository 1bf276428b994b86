# ruff: noqa
# fmt: off
from fastapi import FastAPI, Query, Path, Body, Depends, HTTPException, Request
from pydantic import BaseModel, Field, ConfigDict
from typing import Optional, List, Dict
from sqlalchemy import create_engine, Column, Integer, String, DateTime, ForeignKey, Text, Float, func
from sqlalchemy.orm import declarative_base, relationship, sessionmaker, Session
import os
import random
from datetime import datetime

database_url = os.getenv("DATABASE_PATH", "sqlite:///outputs/databases/music.db")
engine = create_engine(database_url, connect_args={"check_same_thread": False})
SessionLocal = sessionmaker(autocommit=False, autoflush=False, bind=engine)
Base = declarative_base()

app = FastAPI(title="Simplified Music API", description="Playlists of one user.")
SEEN = {"calls": 0}
counter = 0


class User(Base):
    __tablename__ = "users"
    id = Column(Integer, primary_key=True)
    username = Column(Text, nullable=False, unique=True)
    created_at = Column(DateTime)


class Track(Base):
    __tablename__ = "tracks"
    id = Column(Integer, primary_key=True)
    title = Column(Text, nullable=False)
    artist = Column(Text, nullable=False)
    duration_ms = Column(Integer)
    popularity = Column(Float, default=0)


class Playlist(Base):
    __tablename__ = "playlists"
    id = Column(Integer, primary_key=True, autoincrement=True)
    owner_user_id = Column(Integer, ForeignKey("users.id"), nullable=False)
    name = Column(Text, nullable=False)
    is_collaborative = Column(Integer, default=0)
    created_at = Column(DateTime)
    tracks = relationship("PlaylistTrack", cascade="all, delete-orphan")


class PlaylistTrack(Base):
    __tablename__ = "playlist_tracks"
    playlist_id = Column(Integer, ForeignKey("playlists.id"), primary_key=True)
    track_id = Column(Integer, ForeignKey("tracks.id"), primary_key=True)
    position = Column(Integer, nullable=False)


class Tag(Base):
    __tablename__ = "tags"
    slug = Column(Text, primary_key=True)
    stamped = Column(Text)


Base.metadata.create_all(engine)


class TrackModel(BaseModel):
    model_config = ConfigDict(from_attributes=True)
    id: int = Field(..., description="Track ID", example=1)
    title: str = Field(..., description="Title", example="Title")
    artist: str = Field(..., description="Artist", example="Artist")
    popularity: Optional[float] = Field(None, description="Popularity", example=1.5)


class TracksResponse(BaseModel):
    tracks: List[TrackModel] = Field(..., description="Tracks", example=[])


class PlaylistModel(BaseModel):
    id: int = Field(..., description="Playlist ID", example=1)
    name: str = Field(..., description="Name", example="Name")
    is_collaborative: bool = Field(..., description="Whether others may edit", example=True)
    created_at: Optional[str] = Field(None, description="When", example="2025-01-01T00:00:00")


class PlaylistsResponse(BaseModel):
    playlists: List[PlaylistModel] = Field(..., description="Playlists", example=[])


class PlaylistCreateBody(BaseModel):
    name: str = Field(..., min_length=1, description="Playlist name", example="Focus")
    is_collaborative: bool = Field(False, description="Whether others may edit", example=False)


class AddTracksBody(BaseModel):
    track_ids: List[int] = Field(..., description="Tracks to add", example=[1])


def shown(playlist):
    return PlaylistModel(
        id=playlist.id,
        name=playlist.name,
        is_collaborative=bool(playlist.is_collaborative),
        created_at=playlist.created_at.isoformat() if playlist.created_at else None,
    )


@app.get("/api/tracks", response_model=TracksResponse, summary="Search tracks", description="Search by title.",
         tags=["tracks"], operation_id="search_tracks")
async def search_tracks(
    query: str = Query("", description="Part of the title"),
    artists: List[str] = Query([], description="Only these artists"),
    limit: int = Query(20, description="Maximum number", ge=1),
) -> TracksResponse:
    session = SessionLocal()
    found = session.query(Track).filter(Track.title.ilike(f"%{query}%"))
    if artists:
        found = found.filter(Track.artist.in_(artists))
    rows = [TrackModel.model_validate(track) for track in found.limit(limit).all()]
    session.close()
    return TracksResponse(tracks=rows)


@app.get("/api/playlists", response_model=List[PlaylistModel], summary="List playlists",
         description="Playlists of the current user.", tags=["playlists"], operation_id="get_playlists")
async def get_playlists() -> List[PlaylistModel]:
    session = SessionLocal()
    rows = [shown(p) for p in session.query(Playlist).filter(Playlist.owner_user_id == 1).all()]
    session.close()
    return rows


@app.post("/api/playlists", response_model=PlaylistModel, status_code=201, summary="Create a playlist",
          description="Create a playlist.", tags=["playlists"], operation_id="create_playlist")
async def create_playlist(body: PlaylistCreateBody = Body(..., description="Playlist")) -> PlaylistModel:
    session = SessionLocal()
    playlist = Playlist(owner_user_id=1, name=body.name, is_collaborative=1 if body.is_collaborative else 0,
                        created_at=datetime.utcnow())
    session.add(playlist)
    session.commit()
    result = shown(playlist)
    session.close()
    return result


def opened():
    session = SessionLocal()
    try:
        yield session
    finally:
        session.close()


@app.get("/api/playlists/{playlist_id}", response_model=PlaylistModel, summary="Get a playlist",
         description="By ID.", tags=["playlists"], operation_id="get_playlist")
def get_playlist(playlist_id: int = Path(..., description="Playlist ID"), session: Session = Depends(opened)):
    playlist = session.get(Playlist, playlist_id)
    if playlist is None:
        raise HTTPException(status_code=404, detail=f"Playlist {playlist_id} not found")
    return shown(playlist)


@app.post("/api/playlists/{playlist_id}/tracks", response_model=Dict[str, int], summary="Add tracks",
          description="Add tracks at the end.", tags=["playlists"], operation_id="add_tracks")
async def add_tracks(playlist_id: int, body: AddTracksBody) -> Dict[str, int]:
    session = SessionLocal()
    last = session.query(func.max(PlaylistTrack.position)).filter(PlaylistTrack.playlist_id == playlist_id).scalar()
    for number, track_id in enumerate(body.track_ids, (last or 0) + 1):
        session.add(PlaylistTrack(playlist_id=playlist_id, track_id=track_id, position=number))
    session.commit()
    count = session.query(PlaylistTrack).filter(PlaylistTrack.playlist_id == playlist_id).count()
    session.close()
    return {"count": count}


@app.delete("/api/playlists/{playlist_id}", status_code=204, summary="Delete a playlist",
            description="Delete it.", tags=["playlists"], operation_id="delete_playlist")
async def delete_playlist(playlist_id: int):
    session = SessionLocal()
    playlist = session.get(Playlist, playlist_id)
    if playlist is None:
        session.close()
        raise HTTPException(status_code=404, detail="Playlist not found")
    session.delete(playlist)
    session.commit()
    session.close()


@app.post("/api/tags/{slug}", summary="Tag", description="Make a tag; SQL stamps it.", operation_id="create_tag")
async def create_tag(slug: str) -> Dict[str, str]:
    session = SessionLocal()
    session.add(Tag(slug=slug, stamped=func.datetime("now")))
    session.commit()
    stamped = session.get(Tag, slug).stamped
    session.close()
    return {"slug": slug, "stamped": stamped}


@app.get("/api/tags", summary="Tags", description="In the order of their making.", operation_id="get_tags")
async def get_tags() -> List[str]:
    session = SessionLocal()
    found = [tag.slug for tag in session.query(Tag).all()]
    session.close()
    return found


@app.get("/api/count", summary="Count", description="How often it was called.", operation_id="count_calls")
async def count_calls(request: Request) -> Dict[str, int]:
    global counter
    counter += 1
    SEEN["calls"] += 1
    return {"counter": counter, "seen": SEEN["calls"]}


@app.get("/api/broken", summary="Broken", description="Always fails.", operation_id="broken")
async def broken() -> Dict[str, int]:
    session = SessionLocal()
    session.add(Tag(slug="half-written"))
    session.flush()
    return {"x": 1 // 0}


@app.get("/api/wrong", response_model=TrackModel, summary="Wrong", description="Wrong answer.", operation_id="wrong")
async def wrong():
    return {"id": "no number"}


@app.on_event("startup")
async def startup():
    Base.metadata.create_all(bind=engine)


if __name__ == "__main__":
    import uvicorn

    host = os.getenv("HOST", "127.0.0.1")
    port = int(os.getenv("PORT", "8000"))
    uvicorn.run(app, host=host, port=port)
