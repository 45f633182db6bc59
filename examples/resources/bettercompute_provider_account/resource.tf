resource "bettercompute_provider_account" "main" {
  name = "main"

  # On several lines: see "Secrets" in the guides.
  hetzner_cloud = {
    token    = "env://HCLOUD_TOKEN"
    location = "nbg1"
  }
}

# One account per project, from a map.
resource "bettercompute_provider_account" "team" {
  for_each = {
    red  = "env://RED_HCLOUD_TOKEN"
    blue = "vault://secret/blue/hcloud#token"
  }

  name = each.key

  hetzner_cloud = {
    token = each.value
  }
}
