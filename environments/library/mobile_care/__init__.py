"""Customer care of a mobile phone and home internet provider; the customer has tools on their own devices."""

from datetime import date, timedelta
from typing import Annotated

from pydantic import Field

from trajsmith.environments.library.mobile_care import rules
from trajsmith.environments.library.mobile_care.results import (
    AddOnBooking,
    BillExtension,
    BookedVisit,
    Connection,
    DataUsage,
    LineSummary,
    OutageSummary,
    PhoneSignal,
    PlanChange,
    RouterDisplay,
    SettingsSent,
    SimActivation,
    SimInTray,
    SpeedTest,
)
from trajsmith.environments.library.mobile_care.seeds import make_state
from trajsmith.environments.library.mobile_care.state import (
    AddOn,
    AddOnKind,
    Booking,
    Customer,
    Invoice,
    InvoiceStatus,
    MobileCareState,
    Plan,
    Service,
    TimeWindow,
    Visit,
)
from trajsmith.environments.native import Environment, tool
from trajsmith.records import ConfirmationRule, PolicyRule, ToolError


class MobileCare(Environment[MobileCareState]):
    """Customer care of a mobile phone and home internet provider, with the customer at their own router and phone."""

    domain = "telecoms/customer care"
    policy = """
    # Rules of customer care

    1. Only the account of the number from which the customer calls may be opened, with its lines, bills and devices.
    2. While a bill is overdue, no plan is changed and no add-on is booked. Extending the bill lifts this.
    3. A line changes its plan at most once in 30 days, only to a plan on sale, and not while it is suspended. Until its
       minimum term ends it can move only to a plan that costs at least as much.
    4. The due date of an unpaid bill can be extended once, by at most 14 days. The days count from the due date, or
       from today if the bill is overdue.
    5. Add-ons go on active lines only, at most three at a time and each once at a time. Unlimited plans take no data
       add-on, and plans with roaming included take no roaming add-on. An add-on starts within 30 days.
    6. A SIM is activated with the serial number that the customer reads from the phone. It must be one that was sent to
       this account and is not in use, and the line must be active. Afterwards the customer has to switch airplane mode
       on and off once.
    7. Router settings are sent at most once a day and only to a router whose light is solid amber. The customer must
       read the code on the router's display; it has to match what the network sees.
    8. A technician comes only if the customer has restarted the router today, its light is still not green, and no
       outage of home internet is going on in the town. A customer has at most one visit booked. Visits are from
       tomorrow to 30 days ahead, not on Sundays, and on Saturdays in the morning only.
    9. The light of the router: solid green, all is well; blinking amber, it hangs and needs a restart; solid amber, its
       settings are wrong and have to be sent again; blinking red, it gets no signal.
    """
    rules = (
        PolicyRule(
            says="Only the account of the number from which the customer calls may be opened.",
            tools=("find_account_by_phone",),
            same=("phone_number",),
        ),
    )

    @classmethod
    def seed_state(cls, size: str, seed: int) -> MobileCareState:
        return make_state(size, seed)

    # Tools of the assistant

    @tool(effect="read")
    def find_account_by_phone(self, phone_number: str) -> Customer:
        """Open the account of the phone number that the customer calls from.

        Args:
            phone_number: Phone number that the customer calls from.
        """
        if phone_number.replace(" ", "") != self.state.caller.phone_number.replace(" ", ""):
            raise ToolError("the call does not come from this number; please call from the number of the account")
        return self.state.customers[self.state.user_id]

    @tool(effect="read")
    def list_lines(self, customer_id: str) -> list[LineSummary]:
        """List the mobile lines of an account with their plans; a minimum term may have ended already.

        Args:
            customer_id: Customer account.
        """
        rules.own_account(self.state, customer_id)
        return [
            LineSummary(
                line_id=line.line_id,
                label=line.label,
                number=line.number,
                status=line.status,
                plan_name=self.state.plans[line.plan_id].name,
                term_ends=line.term_ends,
            )
            for line in self.state.lines.values()
            if line.customer_id == customer_id
        ]

    @tool(effect="read")
    def get_data_usage(self, line_id: str) -> DataUsage:
        """Show how much data a line has used this month and how much is left.

        Args:
            line_id: Mobile line.
        """
        line = rules.own_line(self.state, line_id)
        allowance = self.state.plans[line.plan_id].data_gb
        today = self.state.now.date()
        if allowance is not None:
            booked = [each for each in rules.running_bookings(self.state, line_id) if each.valid_from <= today]
            allowance += sum(self.state.add_ons[each.add_on_id].data_gb for each in booked)
        left = None if allowance is None else max(0.0, round(allowance - line.used_gb, 1))
        renews_on = (today.replace(day=1) + timedelta(days=32)).replace(day=1)
        return DataUsage(
            label=line.label, used_gb=line.used_gb, allowance_gb=allowance, left_gb=left, renews_on=renews_on
        )

    @tool(effect="read")
    def list_plans(
        self, max_price: Annotated[float | None, Field(gt=0, examples=[10.0, 15.0, 20.0, 25.0, 35.0])] = None
    ) -> list[Plan]:
        """List the mobile plans on sale, cheapest first.

        Args:
            max_price: Highest price per month in pounds.
        """
        plans = [plan for plan in self.state.plans.values() if plan.on_sale]
        fitting = [plan for plan in plans if max_price is None or plan.monthly_price <= max_price]
        return sorted(fitting, key=lambda plan: plan.monthly_price)

    @tool(
        effect="write",
        confirm=ConfirmationRule(always=True, because="a plan can be changed only once in 30 days"),
    )
    def change_plan(self, line_id: str, plan_id: str) -> PlanChange:
        """Move a line to another plan, from today.

        Args:
            line_id: Mobile line.
            plan_id: Plan that the line gets.
        """
        line = rules.own_line(self.state, line_id)
        new = self.lookup(self.state.plans, plan_id, "plan")
        old = self.state.plans[line.plan_id]
        rules.check_plan_change(self.state, line, old, new)
        today = self.state.now.date()
        line.plan_id, line.plan_since = new.plan_id, today
        line.term_ends = rules.add_months(today, new.term_months)
        return PlanChange(
            label=line.label,
            old_plan=old.name,
            plan_name=new.name,
            monthly_price=new.monthly_price,
            term_ends=line.term_ends if new.term_months else None,
        )

    @tool(effect="read")
    def list_add_ons(self, kind: AddOnKind | None = None) -> list[AddOn]:
        """List the add-ons that a line can book.

        Args:
            kind: Only add-ons of this kind.
        """
        return [add_on for add_on in self.state.add_ons.values() if kind in (None, add_on.kind)]

    @tool(
        effect="write", confirm=ConfirmationRule(always=True, because="an add-on costs money and cannot be taken off")
    )
    def book_add_on(self, line_id: str, add_on_id: str, start_date: date | None = None) -> AddOnBooking:
        """Book an add-on for a line.

        Args:
            line_id: Mobile line.
            add_on_id: Add-on to book.
            start_date: First day; today if left out.
        """
        line = rules.own_line(self.state, line_id)
        add_on = self.lookup(self.state.add_ons, add_on_id, "add-on")
        today = self.state.now.date()
        start = start_date or today
        if not today <= start <= today + timedelta(days=30):
            raise ToolError("an add-on must start within the next 30 days")
        rules.check_add_on(self.state, line, add_on)
        booking = Booking(
            booking_id=f"BK{400 + int(self.new_id('booking'))}",
            line_id=line_id,
            add_on_id=add_on_id,
            valid_from=start,
            valid_until=start + timedelta(days=add_on.days),
        )
        self.state.bookings[booking.booking_id] = booking
        return AddOnBooking(
            booking_id=booking.booking_id,
            label=line.label,
            name=add_on.name,
            price=add_on.price,
            valid_from=start,
            valid_until=booking.valid_until,
        )

    @tool(effect="read")
    def list_invoices(self, customer_id: str, status: InvoiceStatus | None = None) -> list[Invoice]:
        """List the latest bills of an account, newest first, at most 8.

        Args:
            customer_id: Customer account.
            status: Only bills in this status.
        """
        rules.own_account(self.state, customer_id)
        mine = [each for each in self.state.invoices.values() if each.customer_id == customer_id]
        fitting = [each for each in mine if status in (None, each.status)]
        return sorted(fitting, key=lambda each: each.issued_on, reverse=True)[:8]

    @tool(effect="write", confirm=ConfirmationRule(always=True, because="a bill can be extended only once"))
    def extend_due_date(
        self, invoice_id: str, extra_days: Annotated[int, Field(ge=1, examples=[3, 5, 7, 10, 14])]
    ) -> BillExtension:
        """Give the customer more time to pay a bill; an overdue bill counts as open again.

        Args:
            invoice_id: Bill.
            extra_days: Days more from the due date, or from today if the bill is overdue; at most 14.
        """
        invoice = self.lookup(self.state.invoices, invoice_id, "bill")
        rules.own_account(self.state, invoice.customer_id)
        if invoice.status == "paid":
            raise ToolError(f"the bill of {invoice.period} is already paid")
        if invoice.extended:
            raise ToolError(f"the bill of {invoice.period} was already extended, until {invoice.due_on}")
        if extra_days > 14:
            raise ToolError("a bill can be extended by at most 14 days")
        invoice.due_on = max(invoice.due_on, self.state.now.date()) + timedelta(days=extra_days)
        invoice.extended, invoice.status = True, "open"
        return BillExtension(
            invoice_id=invoice_id,
            period=invoice.period,
            amount=invoice.amount,
            due_on=invoice.due_on,
            status=invoice.status,
        )

    @tool(
        effect="write",
        destructive=True,
        confirm=ConfirmationRule(always=True, because="the old SIM stops working for good"),
    )
    def activate_sim(self, line_id: str, sim_serial: str) -> SimActivation:
        """Activate a new SIM card for a line; the line's old SIM stops working for good.

        Args:
            line_id: Mobile line that the SIM is for.
            sim_serial: Serial number of the SIM, as the customer's phone shows it.
        """
        line = rules.own_line(self.state, line_id)
        sim = rules.sent_sim(self.state, sim_serial)
        if line.status != "active":
            raise ToolError(f"the {line.label} line is {line.status}, and a SIM goes on an active line only")
        old = [each for each in self.state.sim_cards.values() if each.line_id == line_id and each.status == "in_use"]
        for each in old:
            each.status = "retired"
        sim.line_id, sim.status = line_id, "in_use"
        return SimActivation(
            label=line.label,
            number=line.number,
            old_sims_retired=len(old),
            next_step="switch airplane mode on and off once",
        )

    @tool(effect="read")
    def list_outages(self, customer_id: str, service: Service | None = None) -> list[OutageSummary]:
        """List current, planned and recent outages in the town of an account, latest first.

        Args:
            customer_id: Customer account.
            service: Only outages of this service.
        """
        city = rules.own_account(self.state, customer_id).address.city
        outages = [
            outage
            for outage in self.state.outages.values()
            if outage.city == city and service in (None, outage.service)
        ]
        return [
            OutageSummary(**outage.model_dump(exclude={"city"}))
            for outage in sorted(outages, key=lambda outage: outage.started_at, reverse=True)
        ]

    @tool(effect="write", confirm="never")
    def resend_router_settings(self, customer_id: str, display_code: str) -> SettingsSent:
        """Send the settings to the customer's router anew and move its wifi to a clearer channel.

        Args:
            customer_id: Customer account.
            display_code: Code that the router's display shows now.
        """
        router = rules.router_by_code(self.state, customer_id, display_code)
        sent = router.settings_sent_at
        if sent is not None and sent.date() == self.state.now.date():
            raise ToolError("settings were already sent to this router today")
        if router.fault != "settings":
            light = rules.LIGHTS[router.fault][0].replace("_", " ")
            raise ToolError(f"the router's light is {light}, so its settings are not the trouble")
        router.fault = "none"
        router.settings_sent_at = self.state.now
        router.wifi_channel = self.random().choice([each for each in (1, 6, 11) if each != router.wifi_channel])
        return SettingsSent(
            router_model=router.model,
            wifi_name=router.wifi_name,
            wifi_channel=router.wifi_channel,
            sent_at=self.state.now,
        )

    @tool(effect="write", confirm="never")
    def book_technician(
        self, customer_id: str, display_code: str, visit_date: date, time_window: TimeWindow
    ) -> BookedVisit:
        """Book a technician who repairs the home internet at the customer's address.

        Args:
            customer_id: Customer account.
            display_code: Code that the router's display shows now.
            visit_date: Day of the visit, from tomorrow to 30 days ahead.
            time_window: Part of the day.
        """
        router = rules.router_by_code(self.state, customer_id, display_code)
        rules.check_visit(self.state, router)
        rules.check_visit_day(self.state, visit_date, time_window)
        visit = Visit(
            visit_id=f"V{900 + int(self.new_id('visit'))}",
            customer_id=customer_id,
            scheduled_for=visit_date,
            time_window=time_window,
            status="booked",
            symptom=f"router shows {rules.LIGHTS[router.fault][0]}",
        )
        self.state.visits[visit.visit_id] = visit
        return BookedVisit(
            visit_id=visit.visit_id, scheduled_for=visit_date, time_window=time_window, status=visit.status
        )

    # Tools of the customer, on their own router and phone

    @tool(effect="read", actor="user")
    def read_router_light(self) -> RouterDisplay:
        """Look at the router at home: the colour of its status light and the code on its display."""
        return rules.render_router_display(self.state.routers[self.state.user_id])

    @tool(effect="write", actor="user", confirm="never")
    def restart_router(self) -> RouterDisplay:
        """Unplug the router at home, plug it in again, and look at its light and display afterwards."""
        router = self.state.routers[self.state.user_id]
        router.restarted_at, router.restarts = self.state.now, router.restarts + 1
        if router.fault == "stuck":
            router.fault = "none"
        return rules.render_router_display(router)

    @tool(effect="write", actor="user", confirm="never")
    def toggle_airplane_mode(self) -> PhoneSignal:
        """Switch the phone's airplane mode on and off again, so that it looks for the network anew."""
        phone = self.state.phones[self.state.user_id]
        phone.reconnects += 1
        tray = self.state.sim_cards[phone.tray_serial]
        if phone.built_in_sim or tray.status == "in_use":
            phone.network, phone.signal_bars = phone.coverage, phone.coverage_bars
        return PhoneSignal(phone_model=phone.model, network=phone.network, signal_bars=phone.signal_bars)

    @tool(effect="read", actor="user")
    def run_speed_test(self, connection: Connection) -> SpeedTest:
        """Measure how fast the internet is on the phone.

        Args:
            connection: Over the wifi at home or over the mobile network.
        """
        if connection == "home_wifi":
            router = self.state.routers[self.state.user_id]
            share = {"none": 0.9, "stuck": 0.12, "settings": 0.05, "cable": 0.0}[router.fault]
            download = round(router.speed_mbps * share, 1)
        else:
            phone = self.state.phones[self.state.user_id]
            download = round(phone.signal_bars * {"5G": 41.5, "4G": 9.5, "no_service": 0.0}[phone.network], 1)
        return SpeedTest(connection=connection, download_mbps=download, upload_mbps=round(download / 4, 1))

    @tool(effect="read", actor="user")
    def read_sim_serial(self) -> SimInTray:
        """Read the serial number of the SIM in the phone's tray from the phone's settings."""
        phone = self.state.phones[self.state.user_id]
        return SimInTray(phone_model=phone.model, sim_serial=phone.tray_serial)


__all__ = ["MobileCare"]
