"""What the shop knows: customers, products, orders, shipments, returns, coupons, store credit."""

from datetime import date, datetime
from typing import Literal

from trajsmith.environments.native import EnvironmentState, StateModel

OrderStatus = Literal["pending", "processing", "shipped", "delivered", "cancelled"]
CancelReason = Literal["no_longer_needed", "ordered_by_mistake", "found_cheaper", "arrives_too_late"]
ReturnReason = Literal["damaged", "wrong_item", "not_as_described", "changed_mind"]
ReturnStatus = Literal["requested", "approved", "received", "refunded", "rejected"]
Tier = Literal["standard", "silver", "gold"]


class Address(StateModel):
    street: str
    city: str
    postal_code: str


class Customer(StateModel):
    customer_id: str
    name: str
    email: str
    phone: str
    address: Address
    tier: Tier
    store_credit: float
    newsletter: bool


class Product(StateModel):
    sku: str
    name: str
    category: str
    price: float
    in_stock: int
    restock_date: date | None
    warranty_months: int
    rating: float


class OrderLine(StateModel):
    line_id: str
    sku: str
    product_name: str
    quantity: int
    unit_price: float


class Order(StateModel):
    order_id: str
    customer_id: str
    placed_at: datetime
    status: OrderStatus
    lines: list[OrderLine]
    shipping_address: Address
    coupon_code: str | None
    gift_message: str | None
    total: float


class Shipment(StateModel):
    tracking_number: str
    order_id: str
    carrier: str
    shipped_on: date
    expected_on: date
    last_location: str
    delivered_on: date | None


class Return(StateModel):
    return_id: str
    order_id: str
    line_id: str
    product_name: str
    quantity: int
    reason: ReturnReason
    status: ReturnStatus
    requested_at: datetime
    refund_amount: float


class Coupon(StateModel):
    code: str
    percent_off: int
    minimum_total: float
    valid_until: date
    single_use: bool
    used_by: list[str]


class RetailState(EnvironmentState):
    customers: dict[str, Customer] = {}
    products: dict[str, Product] = {}
    orders: dict[str, Order] = {}
    shipments: dict[str, Shipment] = {}
    returns: dict[str, Return] = {}
    coupons: dict[str, Coupon] = {}
