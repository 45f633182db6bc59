# What a pool holds that another configuration made.
data "bettercompute_instances" "web" {
  pool = provider::bettercompute::pool_uri(bettercompute_provider_account.main.uri, "web")
}
