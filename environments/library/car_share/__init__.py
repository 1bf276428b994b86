"""Support of a car-sharing company; the member stands at a car of it, or sits in it, and has tools there."""

from datetime import date, datetime, timedelta
from typing import Annotated

from pydantic import Field

from trajsmith.environments.library.car_share import rules
from trajsmith.environments.library.car_share.results import (
    AppLock,
    Cancellation,
    CardActivated,
    ChargingSocket,
    DamageReported,
    Dashboard,
    DoorsSwitched,
    Extension,
    FeeWaived,
    GloveCompartment,
    ImmobiliserReleased,
    MemberRecord,
    NearbyCar,
    NewReservation,
    ReservationRow,
    RoadsideSent,
    StartAttempt,
    TariffChange,
    WindscreenCard,
)
from trajsmith.environments.library.car_share.seeds import make_state
from trajsmith.environments.library.car_share.state import (
    CallOut,
    Car,
    CarKind,
    CarShareState,
    Damage,
    Doors,
    Fee,
    FeeStatus,
    Fuel,
    Origin,
    Part,
    Reservation,
    ReservationStatus,
    Slot,
    Tariff,
)
from trajsmith.environments.native import Environment, tool
from trajsmith.records import ConfirmationRule, PolicyRule, ToolError


class CarShare(Environment[CarShareState]):
    """Support of a car-sharing company, with the member at the car that they have reserved."""

    domain = "mobility/car sharing"
    policy = """
    # Rules of member support

    1. Only the membership whose number the caller gives as their own may be opened, with its reservations and fees.
    2. Doors, immobiliser, charge card, damage and roadside help are about the car that the caller has now, which the
       system knows. Doors are switched from here only with the code that the member reads at the windscreen, and they
       are not locked while the drive is on. Nobody gets into a car that was locked from outside before it is unlocked
       again.
    3. A car is reserved from tomorrow to 30 days ahead, in the member's town, as long as the driving licence is valid,
       and when neither the car nor the member has another reservation at that time.
    4. A running or upcoming reservation can be extended by at most 240 minutes at once, and not into the time of the
       next member.
    5. Only upcoming reservations can be cancelled. Less than 24 hours before the start, half of the price has to be
       paid.
    6. Open fees for a late return or for cleaning can be waived up to 30 pounds, once in 12 months.
    7. The immobiliser is released with the code that the dashboard shows after the last attempt to start. It helps only
       if the message is about the immobiliser. The member has to press the start button again afterwards.
    8. A mechanic or a tow truck comes only for a red light, and once for each car. With an amber light, the trip can
       go on. The words beside the light decide, as the member reads them.
    9. The charge card in the glove compartment works for the rest of the trip once its number has been activated.
    10. Damage is reported once for each part. What was there before costs nothing; of damage of their own doing,
        members pay at most the excess of their tariff.
    11. A change of tariff starts on the first day of the next month. Only one change can wait at a time.
    """
    rules = (
        PolicyRule(
            says="Only the membership whose number the caller gives as their own may be opened.",
            tools=("find_member",),
            same=("membership_number",),
        ),
    )

    @classmethod
    def seed_state(cls, size: str, seed: int) -> CarShareState:
        return make_state(size, seed)

    @property
    def _car(self) -> Car:
        return self.state.cars[self.state.car_in_use]

    # Tools of the assistant

    @tool(effect="read")
    def find_member(self, membership_number: str) -> MemberRecord:
        """Open the membership of the person who calls.

        Args:
            membership_number: Number on the caller's membership card.
        """
        if membership_number.replace(" ", "") != self.state.caller.membership_number.replace(" ", ""):
            raise ToolError("this number is not the caller's; only the caller's own membership may be opened")
        return rules.build_record(self.state, self.state.members[self.state.user_id])

    @tool(effect="read")
    def list_reservations(self, member_id: str, status: ReservationStatus | None = None) -> list[ReservationRow]:
        """List the reservations of a member, latest first, at most 8.

        Args:
            member_id: Member.
            status: Only reservations in this status.
        """
        rules.own_member(self.state, member_id)
        rows = [each for each in self.state.reservations.values() if each.member_id == member_id]
        fitting = [each for each in rows if status in (None, each.status)]
        latest = sorted(fitting, key=lambda each: each.starts_at, reverse=True)[:8]
        return [rules.build_row(self.state, each) for each in latest]

    @tool(effect="read")
    def list_cars_nearby(
        self, member_id: str, kind: CarKind | None = None, fuel: Fuel | None = None
    ) -> list[NearbyCar]:
        """List cars that can be reserved near a member, the nearest first, at most 6.

        Args:
            member_id: Member.
            kind: Only cars of this kind.
            fuel: Only cars that run on this.
        """
        member = rules.own_member(self.state, member_id)
        offers = [
            rules.build_offer(self.state, member, car)
            for car in rules.list_cars_in_town(self.state, member)
            if kind in (None, car.kind) and fuel in (None, car.fuel)
        ]
        return sorted(offers, key=lambda offer: (offer.walk_minutes, offer.car_id))[:6]

    @tool(effect="write", confirm=ConfirmationRule(always=True, because="a reservation costs money"))
    def reserve_car(self, member_id: str, car_id: str, start_date: date, slot: Slot) -> NewReservation:
        """Reserve a car for a member.

        Args:
            member_id: Member.
            car_id: Car.
            start_date: Day, from tomorrow to 30 days ahead.
            slot: From 7:00 to 13:00, from 13:00 to 19:00, or both.
        """
        member = rules.own_member(self.state, member_id)
        car = self.lookup(self.state.cars, car_id, "car")
        starts, ends = rules.SLOTS[slot]
        starts_at, ends_at = datetime.combine(start_date, starts), datetime.combine(start_date, ends)
        rules.check_new_reservation(self.state, member, car, starts_at, ends_at)
        hours = (ends_at - starts_at).total_seconds() / 3600
        reservation = Reservation(
            reservation_id=f"RS{8000 + int(self.new_id('reservation')) * 7}",
            member_id=member_id,
            car_id=car_id,
            starts_at=starts_at,
            ends_at=ends_at,
            status="upcoming",
            price=round(hours * rules.compute_hourly_price(self.state, member, car), 2),
        )
        self.state.reservations[reservation.reservation_id] = reservation
        return NewReservation(
            reservation_id=reservation.reservation_id,
            car_model=car.car_model,
            station_name=self.state.stations[car.station_id].station_name,
            starts_at=starts_at,
            ends_at=ends_at,
            price=reservation.price,
        )

    @tool(
        effect="write",
        confirm=ConfirmationRule(above={"extra_minutes": 90}, because="every hour costs money"),
    )
    def extend_reservation(
        self, reservation_id: str, extra_minutes: Annotated[int, Field(ge=15, examples=[30, 45, 60, 90, 120])]
    ) -> Extension:
        """Let a member keep the car longer.

        Args:
            reservation_id: Running or upcoming reservation.
            extra_minutes: Minutes more, at most 240.
        """
        reservation = rules.own_reservation(self.state, reservation_id)
        ends_at = rules.check_extension(self.state, reservation, extra_minutes)
        car, member = self.state.cars[reservation.car_id], self.state.members[reservation.member_id]
        extra = round(extra_minutes / 60 * rules.compute_hourly_price(self.state, member, car), 2)
        reservation.ends_at, reservation.price = ends_at, round(reservation.price + extra, 2)
        return Extension(car_model=car.car_model, ends_at=ends_at, extra_price=extra, price=reservation.price)

    @tool(
        effect="write",
        destructive=True,
        confirm=ConfirmationRule(always=True, because="a cancelled reservation cannot be brought back"),
    )
    def cancel_reservation(self, reservation_id: str) -> Cancellation:
        """Cancel an upcoming reservation; less than 24 hours before the start, half of the price has to be paid.

        Args:
            reservation_id: Upcoming reservation.
        """
        reservation = rules.own_reservation(self.state, reservation_id)
        if reservation.status != "upcoming":
            raise ToolError(f"this reservation is {reservation.status} and cannot be cancelled")
        late = reservation.starts_at - self.state.now < timedelta(hours=24)
        reservation.status, reservation.price = "cancelled", round(reservation.price / 2, 2) if late else 0.0
        return Cancellation(
            car_model=self.state.cars[reservation.car_id].car_model,
            starts_at=reservation.starts_at,
            status=reservation.status,
            to_pay=reservation.price,
        )

    @tool(effect="write", confirm="never")
    def unlock_car(self, windscreen_code: str) -> DoorsSwitched:
        """Unlock the doors of the car that a member has now.

        Args:
            windscreen_code: Code on the card behind the windscreen of the car.
        """
        car = rules.car_by_code(self.state, windscreen_code)
        if car.doors == "unlocked":
            raise ToolError("the doors are unlocked already")
        return self._switch_doors(car, "unlocked")

    @tool(effect="write", confirm="never")
    def lock_car(self, windscreen_code: str) -> DoorsSwitched:
        """Lock the doors of the car that a member has now.

        Args:
            windscreen_code: Code on the card behind the windscreen of the car.
        """
        car = rules.car_by_code(self.state, windscreen_code)
        if car.drive == "on":
            raise ToolError("the drive is still on; please have it switched off first")
        if car.doors == "locked":
            raise ToolError("the doors are locked already")
        return self._switch_doors(car, "locked")

    def _switch_doors(self, car: Car, doors: Doors) -> DoorsSwitched:
        car.doors, car.remote_commands = doors, car.remote_commands + 1
        return DoorsSwitched(car_model=car.car_model, plate=car.plate, doors=doors)

    @tool(effect="write", confirm="never")
    def release_immobiliser(self, start_code: str) -> ImmobiliserReleased:
        """Release the immobiliser of a car that does not start.

        Args:
            start_code: Code that the dashboard shows after the attempt to start.
        """
        car = self._car
        if start_code.strip().upper() != rules.get_start_code(car):
            raise ToolError("this is not the code of the last attempt; please have the start button pressed again")
        if car.start_fault != "immobiliser":
            raise ToolError("this code is not about the immobiliser, so releasing it does not help")
        car.start_fault = "none"
        return ImmobiliserReleased(
            car_model=car.car_model, immobiliser="released", next_step="press the start button again"
        )

    @tool(effect="write", confirm="never")
    def activate_charge_card(self, charge_card: str) -> CardActivated:
        """Activate the charge card of a car for public charging points, for the rest of the trip.

        Args:
            charge_card: Number on the charge card in the glove compartment.
        """
        car = self._car
        if charge_card.strip() != car.charge_card:
            raise ToolError("no charge card with this number belongs to the car")
        if car.charge_card_active:
            raise ToolError("this charge card is active already")
        car.charge_card_active = True
        ends_at = rules.find_trip(self.state).ends_at
        return CardActivated(car_model=car.car_model, charge_card=car.charge_card, valid_until=ends_at)

    @tool(effect="read")
    def list_fees(self, member_id: str, status: FeeStatus | None = None) -> list[Fee]:
        """List the extra fees of a member, newest first, at most 8.

        Args:
            member_id: Member.
            status: Only fees in this status.
        """
        rules.own_member(self.state, member_id)
        mine = [each for each in self.state.fees.values() if each.member_id == member_id]
        fitting = [each for each in mine if status in (None, each.status)]
        return sorted(fitting, key=lambda each: each.charged_on, reverse=True)[:8]

    @tool(effect="write", confirm=ConfirmationRule(always=True, because="only one fee is waived in 12 months"))
    def waive_fee(self, fee_id: str) -> FeeWaived:
        """Waive an open fee for a late return or for cleaning, as a gesture.

        Args:
            fee_id: Fee.
        """
        fee = self.lookup(self.state.fees, fee_id, "fee")
        rules.own_member(self.state, fee.member_id)
        rules.check_waiver(self.state, fee)
        fee.status = "waived"
        return FeeWaived(reason=fee.reason, amount=fee.amount, status=fee.status)

    @tool(effect="write", confirm="never")
    def report_damage(self, member_id: str, part: Part, origin: Origin) -> DamageReported:
        """Write down damage to the car that a member has now.

        Args:
            member_id: Member.
            part: Damaged part of the car.
            origin: Found before the trip, or the member's own doing.
        """
        rules.own_member(self.state, member_id)
        car = self._car
        trip = rules.find_trip(self.state)
        for each in self.state.damages.values():
            if each.reservation_id == trip.reservation_id and each.part == part:
                raise ToolError("damage to this part was reported during this trip already")
        damage = Damage(
            damage_id=f"DM{40 + int(self.new_id('damage'))}",
            reservation_id=trip.reservation_id,
            car_id=car.car_id,
            part=part,
            origin=origin,
            reported_at=self.state.now,
        )
        self.state.damages[damage.damage_id] = damage
        tariff = self.state.tariffs[self.state.members[member_id].tariff_id]
        return DamageReported(
            damage_id=damage.damage_id,
            car_model=car.car_model,
            part=part,
            origin=origin,
            to_pay_at_most=tariff.excess if origin == "own" else 0.0,
        )

    @tool(effect="write", confirm="never")
    def send_roadside(self, warning_text: str) -> RoadsideSent:
        """Send a mechanic or a tow truck to the car that a member has now, for a red light on the dashboard.

        Args:
            warning_text: Words beside the light, as the dashboard shows them.
        """
        car = self._car
        if car.warning is None or warning_text.strip().lower() != car.warning.lower():
            raise ToolError("the car does not report this; please have the words on the dashboard read again")
        light, helper = rules.WARNINGS[car.warning]
        if light != "red":
            raise ToolError("this light is amber, so the trip can go on; help comes only for a red one")
        if any(
            each.car_id == car.car_id and each.arrives_at > self.state.now for each in self.state.call_outs.values()
        ):
            raise ToolError("help is on its way to this car already")
        minutes = 20 + car.odometer_km % 6 * 5
        call_out = CallOut(
            call_out_id=f"CO{70 + int(self.new_id('call_out'))}",
            car_id=car.car_id,
            help=helper,
            cause=car.warning,
            arrives_at=self.state.now + timedelta(minutes=minutes),
        )
        self.state.call_outs[call_out.call_out_id] = call_out
        return RoadsideSent(call_out_id=call_out.call_out_id, car_model=car.car_model, help=helper, minutes=minutes)

    @tool(effect="read")
    def list_tariffs(self) -> list[Tariff]:
        """List the tariffs with their prices in pounds, by monthly fee; the hourly price is that of a city car."""
        return sorted(self.state.tariffs.values(), key=lambda tariff: tariff.monthly_fee)

    @tool(effect="write", confirm=ConfirmationRule(always=True, because="only one change of tariff can wait at a time"))
    def change_tariff(self, member_id: str, tariff_id: str) -> TariffChange:
        """Move a member to another tariff, from the first day of next month.

        Args:
            member_id: Member.
            tariff_id: Tariff that the member gets.
        """
        member = rules.own_member(self.state, member_id)
        new = self.lookup(self.state.tariffs, tariff_id, "tariff")
        if member.next_tariff_id is not None:
            raise ToolError("a change of tariff is waiting for the first of next month already")
        if member.tariff_id == tariff_id:
            raise ToolError(f"the member has {new.name} already")
        member.next_tariff_id = tariff_id
        return TariffChange(
            old_tariff=self.state.tariffs[member.tariff_id].name,
            tariff_name=new.name,
            monthly_fee=new.monthly_fee,
            valid_from=rules.find_first_of_next_month(self.state.now.date()),
        )

    # Tools of the member, at the car

    @tool(effect="read", actor="user")
    def read_windscreen_code(self) -> WindscreenCard:
        """Read the code on the card behind the windscreen of the car, and the number plate."""
        return WindscreenCard(plate=self._car.plate, windscreen_code=self._car.windscreen_code)

    @tool(effect="read", actor="user")
    def read_dashboard(self) -> Dashboard:
        """Look at the car's dashboard: warning light and the words beside it, charge, kilometres."""
        rules.check_inside(self._car)
        return rules.render_dashboard(self._car)

    @tool(effect="write", actor="user", confirm="never")
    def press_start_button(self) -> StartAttempt:
        """Press the car's start button with a foot on the brake, which switches the drive on, or off if it is on."""
        rules.check_inside(self._car)
        return rules.press_start(self._car)

    @tool(effect="read", actor="user")
    def look_in_glove_compartment(self) -> GloveCompartment:
        """Look into the car's glove compartment: the number on the charge card, and the claim form."""
        rules.check_inside(self._car)
        return GloveCompartment(
            charge_card=self._car.charge_card, claim_form="in its folder" if self._car.claim_form else "missing"
        )

    @tool(effect="write", actor="user", confirm="never")
    def plug_in_charging_cable(self) -> ChargingSocket:
        """Push the charging cable firmly into the car's socket and look at the light beside it."""
        car = self._car
        car.cable_in, car.plugs = True, car.plugs + 1
        minutes = (100 - car.charge_percent) * 3
        return ChargingSocket(
            charge_light="green" if car.charging_point_works else "red",
            charge_percent=car.charge_percent,
            full_at=self.state.now + timedelta(minutes=minutes) if car.charging_point_works else None,
        )

    @tool(effect="write", actor="user", confirm="never")
    def lock_doors_with_app(self) -> AppLock:
        """Close all doors of the car and lock them with the app on the phone."""
        car = self._car
        car.lock_attempts += 1
        if car.drive == "on":
            return AppLock(doors=car.doors, app_message="Please switch off the drive first")
        if not car.app_connected:
            return AppLock(doors=car.doors, app_message="No connection to the car")
        car.doors = "locked"
        return AppLock(doors=car.doors, app_message="Locked")


__all__ = ["CarShare"]
