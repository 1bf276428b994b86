"""A server in AWM's form, written for the tests."""

import os
from typing import List, Optional

from fastapi import Depends, FastAPI, HTTPException
from pydantic import BaseModel
from sqlalchemy import Column, ForeignKey, Integer, Text, create_engine
from sqlalchemy.orm import Session, declarative_base, sessionmaker

engine = create_engine(os.getenv("DATABASE_PATH", "sqlite:///shelf.db"), connect_args={"check_same_thread": False})
SessionLocal = sessionmaker(autocommit=False, autoflush=False, bind=engine)
Base = declarative_base()
app = FastAPI(title="Shelf", description="Jars on shelves.")


class Shelf(Base):
    __tablename__ = "shelves"
    id = Column(Integer, primary_key=True)
    name = Column(Text, nullable=False)


class Jar(Base):
    __tablename__ = "jars"
    id = Column(Integer, primary_key=True, autoincrement=True)
    shelf_id = Column(Integer, ForeignKey("shelves.id"), nullable=False)
    label = Column(Text, nullable=False)


class JarOut(BaseModel):
    id: int
    shelf_id: int
    label: str


class JarIn(BaseModel):
    shelf_id: int
    label: str


def get_db():
    db = SessionLocal()
    try:
        yield db
    finally:
        db.close()


def shown(jar: Jar) -> JarOut:
    return JarOut(id=jar.id, shelf_id=jar.shelf_id, label=jar.label)


@app.get("/jars", response_model=List[JarOut], operation_id="list_jars", summary="List jars")
def list_jars(shelf_id: Optional[int] = None, db: Session = Depends(get_db)):
    """List all jars, or those of one shelf."""
    query = db.query(Jar)
    if shelf_id is not None:
        query = query.filter(Jar.shelf_id == shelf_id)
    return [shown(jar) for jar in query.all()]


@app.get("/jars/{jar_id}", response_model=JarOut, operation_id="get_jar", summary="Show a jar")
def get_jar(jar_id: int, db: Session = Depends(get_db)):
    """Show one jar."""
    jar = db.get(Jar, jar_id)
    if jar is None:
        raise HTTPException(status_code=404, detail="jar not found")
    return shown(jar)


@app.post("/jars", response_model=JarOut, operation_id="add_jar", summary="Put a jar on a shelf")
def add_jar(jar: JarIn, db: Session = Depends(get_db)):
    """Put a new jar on a shelf."""
    if db.get(Shelf, jar.shelf_id) is None:
        raise HTTPException(status_code=404, detail="shelf not found")
    made = Jar(shelf_id=jar.shelf_id, label=jar.label)
    db.add(made)
    db.commit()
    db.refresh(made)
    return shown(made)


@app.delete("/jars/{jar_id}", operation_id="remove_jar", summary="Throw a jar away")
def remove_jar(jar_id: int, db: Session = Depends(get_db)):
    """Throw a jar away."""
    jar = db.get(Jar, jar_id)
    if jar is None:
        raise HTTPException(status_code=404, detail="jar not found")
    db.delete(jar)
    db.commit()
    return {"removed": jar_id}
