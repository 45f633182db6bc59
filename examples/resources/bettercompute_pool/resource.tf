resource "bettercompute_pool" "web" {
  name             = "web"
  provider_account = bettercompute_provider_account.main.uri

  flavors = {
    small = "cx23"
    large = "cx43"
  }

  limits = {
    instances      = 10
    price_per_hour = 0.25
  }
}
