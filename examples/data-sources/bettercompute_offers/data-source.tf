# The cheapest that is in stock with 4 processors and 8 GiB; null if there is none.
data "bettercompute_offers" "medium" {
  provider_account = bettercompute_provider_account.main.uri
  min_vcpu         = 4
  min_memory_gib   = 8
}

output "cheapest" {
  value = try([for offer in data.bettercompute_offers.medium.offers : "${offer.id}: ${offer.price_per_hour} ${offer.currency}" if offer.available][0], null)
}
