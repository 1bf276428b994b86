"""What the tools of the shop return where that is not an entity of the state."""

from trajsmith.environments.library.retail.state import Address, CancelReason, OrderStatus
from trajsmith.environments.native import StateModel


class OrderSummary(StateModel):
    order_id: str
    placed_at: str
    status: OrderStatus
    items: str
    total: float


class CatalogueEntry(StateModel):
    """Product as the catalogue shows it; its page has more."""

    sku: str
    name: str
    category: str
    price: float
    in_stock: int
    rating: float


class OrderChange(StateModel):
    order_id: str
    status: OrderStatus
    shipping_address: Address
    gift_message: str | None
    coupon_code: str | None
    total: float


class PlacedOrder(StateModel):
    order_id: str
    product_name: str
    quantity: int
    total: float
    status: OrderStatus


class Cancellation(StateModel):
    order_id: str
    status: OrderStatus
    refund_amount: float
    reason: CancelReason
