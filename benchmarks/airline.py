"""An airline's service desk with the tools, data and behaviour that recorded tau-bench and tau2-bench dialogues show.

Written from the tools' published schemas and from recorded calls. It has no data of its own: give it the published
database with `state_files`. What the recordings fix: bookings take seats and changed flights do not; ids of new
reservations and certificates come from fixed lists; certificates are used up whole.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_serializer

from trajsmith.environments.native import Environment, EnvironmentState, tool
from trajsmith.records import ToolError

Cabin = Literal["basic_economy", "economy", "business"]
NEW_RESERVATIONS = ("HATHAT", "HATHAU", "HATHAV")
NEW_CERTIFICATES = (3221322, 3221323, 3221324)
BAG, INSURANCE = 50, 30
CITIES = {
    "SFO": "San Francisco", "JFK": "New York", "LAX": "Los Angeles", "ORD": "Chicago", "DFW": "Dallas",
    "DEN": "Denver", "SEA": "Seattle", "ATL": "Atlanta", "MIA": "Miami", "BOS": "Boston", "PHX": "Phoenix",
    "IAH": "Houston", "LAS": "Las Vegas", "MCO": "Orlando", "EWR": "Newark", "CLT": "Charlotte",
    "MSP": "Minneapolis", "DTW": "Detroit", "PHL": "Philadelphia", "LGA": "LaGuardia",
}  # fmt: skip
TOKEN = re.compile(r"\d+\.?\d*|\.\d+|[-+*/()]")


class Sparse(BaseModel):
    """A record that is written without what it does not have."""

    model_config = ConfigDict(extra="forbid")

    @model_serializer(mode="wrap")
    def _without_nulls(self, write):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202 - hints would be its schema
        return {name: value for name, value in write(self).items() if value is not None}


class Day(Sparse):
    """One flight on one day."""

    status: str
    actual_departure_time_est: str | None = None
    actual_arrival_time_est: str | None = None
    estimated_departure_time_est: str | None = None
    estimated_arrival_time_est: str | None = None
    available_seats: dict[str, int] | None = None
    prices: dict[str, int] | None = None


class Flight(Sparse):
    flight_number: str
    origin: str
    destination: str
    scheduled_departure_time_est: str
    scheduled_arrival_time_est: str
    dates: dict[str, Day]


class Name(Sparse):
    first_name: str
    last_name: str


class PaymentMethod(Sparse):
    source: Literal["credit_card", "gift_card", "certificate"]
    id: str
    brand: str | None = None
    last_four: str | None = None
    amount: float | None = None


class Passenger(Sparse):
    first_name: Annotated[str, Field(description="Passenger's first name")]
    last_name: Annotated[str, Field(description="Passenger's last name")]
    dob: Annotated[str, Field(description="Date of birth in YYYY-MM-DD format")]


class User(Sparse):
    user_id: str
    name: Name
    address: dict[str, str]
    email: str
    dob: str
    payment_methods: dict[str, PaymentMethod]
    saved_passengers: list[Passenger]
    membership: str
    reservations: list[str]


class Leg(Sparse):
    """One flight of a reservation."""

    flight_number: str
    origin: str
    destination: str
    date: str
    price: int


class Payment(Sparse):
    payment_id: Annotated[str, Field(description="Unique identifier for the payment")]
    amount: Annotated[float, Field(description="Payment amount in dollars")]


class FlightInfo(Sparse):
    model_config = ConfigDict(extra="ignore")

    flight_number: Annotated[str, Field(description="Flight number, such as 'HAT001'.")]
    date: Annotated[str, Field(description="The date of the flight, such as '2024-05-01'.")]


class Reservation(Sparse):
    reservation_id: str
    user_id: str
    origin: str
    destination: str
    flight_type: str
    cabin: str
    flights: list[Leg]
    passengers: list[Passenger]
    payment_history: list[Payment]
    created_at: str
    total_baggages: int
    nonfree_baggages: int
    insurance: str
    status: str | None = None


class Offer(Sparse):
    """One flight that a search found."""

    flight_number: str
    origin: str
    destination: str
    status: str
    scheduled_departure_time_est: str
    scheduled_arrival_time_est: str
    date: str | None = None
    available_seats: dict[str, int]
    prices: dict[str, int]


class Airport(Sparse):
    iata: str
    city: str


class AirlineState(EnvironmentState):
    now: datetime = datetime(2024, 5, 15, 15, 0, 0)
    flights: dict[str, Flight] = {}
    users: dict[str, User] = {}
    reservations: dict[str, Reservation] = {}


class Airline(Environment[AirlineState]):
    """Service desk of an airline: book, change and cancel reservations."""

    domain = "travel/airline"
    policy = ""

    @classmethod
    def seed_state(cls, size: str, seed: int) -> AirlineState:
        """An airline without customers; real ones come from files."""
        return AirlineState()

    @tool(effect="write")
    def book_reservation(
        self,
        user_id: str,
        origin: str,
        destination: str,
        flight_type: Literal["round_trip", "one_way"],
        cabin: Cabin,
        flights: list[FlightInfo],
        passengers: list[Passenger],
        payment_methods: list[Payment],
        total_baggages: int,
        nonfree_baggages: int,
        insurance: Literal["yes", "no"],
    ) -> Reservation:
        """Book a reservation."""
        user = self._user(user_id)
        reservation_id = next((one for one in NEW_RESERVATIONS if one not in self.state.reservations), None)
        if reservation_id is None:
            raise ToolError("too many reservations")
        legs = [self._leg(info, cabin, len(passengers)) for info in flights]
        total = sum(leg.price for leg in legs) * len(passengers)
        total += (INSURANCE * len(passengers) if insurance == "yes" else 0) + BAG * nonfree_baggages
        self._check_payments(user, payment_methods, total)
        for payment in payment_methods:
            method = user.payment_methods[payment.payment_id]
            if method.source == "gift_card" and method.amount is not None:
                method.amount -= payment.amount
            elif method.source == "certificate":
                del user.payment_methods[payment.payment_id]
        for info in flights:
            seats = self.state.flights[info.flight_number].dates[info.date].available_seats or {}
            seats[cabin] -= len(passengers)
        reservation = Reservation(
            reservation_id=reservation_id, user_id=user_id, origin=origin, destination=destination,
            flight_type=flight_type, cabin=cabin, flights=legs, passengers=passengers,
            payment_history=payment_methods, created_at="2024-05-15T15:00:00", total_baggages=total_baggages,
            nonfree_baggages=nonfree_baggages, insurance=insurance,
        )  # fmt: skip
        self.state.reservations[reservation_id] = reservation
        user.reservations.append(reservation_id)
        return reservation

    @tool(effect="read")
    def calculate(self, expression: str) -> str:
        """Calculate the result of a mathematical expression with numbers, + - * / and parentheses."""
        if not set(expression) <= set("0123456789+-*/(). "):
            raise ToolError("Invalid characters in expression")
        reckoner = Reckoner(expression)
        try:
            value = reckoner.sum()
        except (ValueError, ZeroDivisionError, IndexError) as error:
            raise ToolError(f"cannot calculate {expression}") from error
        if reckoner.tokens != [""]:
            raise ToolError(f"cannot calculate {expression}")
        return str(round(value, 2))

    @tool(effect="write")
    def cancel_reservation(self, reservation_id: str) -> Reservation:
        """Cancel the whole reservation."""
        reservation = self._reservation(reservation_id)
        reservation.payment_history += [
            Payment(payment_id=payment.payment_id, amount=-payment.amount) for payment in reservation.payment_history
        ]
        reservation.status = "cancelled"
        return reservation

    @tool(effect="read")
    def get_reservation_details(self, reservation_id: str) -> Reservation:
        """Get the details of a reservation."""
        return self._reservation(reservation_id)

    @tool(effect="read")
    def get_user_details(self, user_id: str) -> User:
        """Get the details of a user, including their reservations."""
        return self._user(user_id)

    @tool(effect="read")
    def list_all_airports(self) -> list[Airport]:
        """Returns a list of all available airports."""
        return [Airport(iata=iata, city=city) for iata, city in CITIES.items()]

    @tool(effect="read")
    def search_direct_flight(self, origin: str, destination: str, date: str) -> list[Offer]:
        """Search for direct flights between two cities on a specific date."""
        return list(self._offers(origin, destination, date))

    @tool(effect="read")
    def search_onestop_flight(self, origin: str, destination: str, date: str) -> list[list[Offer]]:
        """Search for one-stop flights between two cities on a specific date."""
        connections = []
        for first in self._offers(origin, None, date):
            overnight = "+1" in first.scheduled_arrival_time_est
            day = f"2024-05-{int(date[-2:]) + 1}" if overnight else date
            for second in self._offers(first.destination, destination, day):
                if first.scheduled_arrival_time_est <= second.scheduled_departure_time_est:
                    pair = ((first, date), (second, day))
                    connections.append([offer.model_copy(update={"date": when}) for offer, when in pair])
        return connections

    @tool(effect="write")
    def send_certificate(self, user_id: str, amount: int) -> str:
        """Send a certificate to a user. Be careful!"""
        user = self._user(user_id)
        for name in (f"certificate_{number}" for number in NEW_CERTIFICATES):
            if name not in user.payment_methods:
                user.payment_methods[name] = PaymentMethod(source="certificate", id=name, amount=amount)
                return f"Certificate {name} added to user {user_id} with amount {amount}."
        raise ToolError("Too many certificates")

    @tool(effect="read")
    def think(self, thought: str) -> str:
        """Think about something; nothing is looked up or changed."""
        return ""

    @tool(effect="read")
    def transfer_to_human_agents(self, summary: str) -> str:
        """Transfer the user to a human agent, with a summary of the user's issue."""
        return "Transfer successful"

    @tool(effect="write")
    def update_reservation_baggages(
        self, reservation_id: str, total_baggages: int, nonfree_baggages: int, payment_id: str
    ) -> Reservation:
        """Update the baggage information of a reservation."""
        reservation = self._reservation(reservation_id)
        price = BAG * max(0, nonfree_baggages - reservation.nonfree_baggages)
        self._pay(reservation, payment_id, price)
        reservation.total_baggages, reservation.nonfree_baggages = total_baggages, nonfree_baggages
        return reservation

    @tool(effect="write")
    def update_reservation_flights(
        self, reservation_id: str, cabin: Cabin, flights: list[FlightInfo], payment_id: str
    ) -> Reservation:
        """Update the flights of a reservation; all of them must be given, also those that stay."""
        reservation = self._reservation(reservation_id)
        legs = []
        for info in flights:
            unchanged = (
                leg for leg in reservation.flights if (leg.flight_number, leg.date) == (info.flight_number, info.date)
            )
            same = next(unchanged, None) if cabin == reservation.cabin else None
            legs.append(same or self._leg(info, cabin, len(reservation.passengers)))
        price = (sum(leg.price for leg in legs) - sum(leg.price for leg in reservation.flights)) * len(
            reservation.passengers
        )
        self._pay(reservation, payment_id, price)
        reservation.flights, reservation.cabin = legs, cabin
        return reservation

    @tool(effect="write")
    def update_reservation_passengers(self, reservation_id: str, passengers: list[Passenger]) -> Reservation:
        """Update the passenger information of a reservation."""
        reservation = self._reservation(reservation_id)
        if len(passengers) != len(reservation.passengers):
            raise ToolError("Number of passengers does not match")
        reservation.passengers = passengers
        return reservation

    @tool(effect="read")
    def get_flight_status(self, flight_number: str, date: str) -> str:
        """Get the status of a flight."""
        return self._day(FlightInfo(flight_number=flight_number, date=date)).status

    def _user(self, user_id: str) -> User:
        if user_id not in self.state.users:
            raise ToolError(f"User {user_id} not found")
        return self.state.users[user_id]

    def _reservation(self, reservation_id: str) -> Reservation:
        if reservation_id not in self.state.reservations:
            raise ToolError(f"Reservation {reservation_id} not found")
        return self.state.reservations[reservation_id]

    def _day(self, info: FlightInfo) -> Day:
        flight = self.state.flights.get(info.flight_number)
        if flight is None:
            raise ToolError(f"Flight {info.flight_number} not found")
        if info.date not in flight.dates:
            raise ToolError(f"Flight {info.flight_number} not found on date {info.date}")
        return flight.dates[info.date]

    def _leg(self, info: FlightInfo, cabin: str, passengers: int) -> Leg:
        """One flight at today's price.

        Raises:
            ToolError: It is not sold on that day, or has too few seats left.
        """
        day = self._day(info)
        if day.status != "available" or day.available_seats is None or day.prices is None:
            raise ToolError(f"Flight {info.flight_number} not available on date {info.date}")
        if day.available_seats[cabin] < passengers:
            raise ToolError(f"Not enough seats on flight {info.flight_number}")
        flight = self.state.flights[info.flight_number]
        return Leg(
            flight_number=info.flight_number, origin=flight.origin, destination=flight.destination, date=info.date,
            price=day.prices[cabin],
        )  # fmt: skip

    def _check_payments(self, user: User, payments: Sequence[Payment], total: float) -> None:
        for payment in payments:
            method = user.payment_methods.get(payment.payment_id)
            if method is None:
                raise ToolError(f"Payment method {payment.payment_id} not found")
            if method.source != "credit_card" and (method.amount or 0) < payment.amount:
                raise ToolError(f"Not enough balance in payment method {payment.payment_id}")
        paid = sum(payment.amount for payment in payments)
        if paid != total:
            raise ToolError(f"Payment amount does not add up, total price is {total}, but paid {paid}")

    def _pay(self, reservation: Reservation, payment_id: str, price: float) -> None:
        """Charge a change, or pay back where the price is negative."""
        method = self._user(reservation.user_id).payment_methods.get(payment_id)
        if method is None:
            raise ToolError("Payment method not found")
        if method.source == "certificate":
            raise ToolError("Certificate cannot be used to update reservation")
        if method.source == "gift_card" and (method.amount or 0) < price:
            raise ToolError("Gift card balance is not enough")
        if method.source == "gift_card" and method.amount is not None:
            method.amount -= price
        if price:
            reservation.payment_history.append(Payment(payment_id=payment_id, amount=price))

    def _offers(self, origin: str, destination: str | None, date: str) -> Iterator[Offer]:
        for flight in self.state.flights.values():
            day = flight.dates.get(date)
            if flight.origin != origin or destination not in (None, flight.destination) or day is None:
                continue
            if day.status == "available" and day.available_seats is not None and day.prices is not None:
                shown = flight.model_dump(exclude={"dates"})
                yield Offer(**shown, status="available", available_seats=day.available_seats, prices=day.prices)


class Reckoner:
    """Reads an expression of numbers, + - * / and parentheses from left to right."""

    def __init__(self, text: str) -> None:
        self.tokens = [*TOKEN.findall(text), ""]

    def sum(self) -> float:
        value = self.product()
        while self.tokens[0] in ("+", "-"):
            value = value + self.product() if self.tokens.pop(0) == "+" else value - self.product()
        return value

    def product(self) -> float:
        value = self.factor()
        while self.tokens[0] in ("*", "/"):
            value = value * self.factor() if self.tokens.pop(0) == "*" else value / self.factor()
        return value

    def factor(self) -> float:
        """A number, or a sum in parentheses, with or without a sign.

        Raises:
            ValueError: There is something else.
        """
        token = self.tokens.pop(0)
        if token in ("+", "-"):
            return self.factor() if token == "+" else -self.factor()
        if token != "(":
            return float(token)
        value = self.sum()
        if self.tokens.pop(0) != ")":
            raise ValueError("a parenthesis is not closed")
        return value
