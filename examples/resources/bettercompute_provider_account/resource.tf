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

# A team at DigitalOcean. Machines that name no region are made in this one.
resource "bettercompute_provider_account" "ocean" {
  name = "main"

  digitalocean = {
    token  = "env://DIGITALOCEAN_TOKEN"
    region = "fra1"
  }
}

# A Proxmox VE cluster of your own, whose certificate is pinned.
resource "bettercompute_provider_account" "cluster" {
  name = "main"

  proxmox = {
    url             = "https://pve.example.com:8006"
    token           = "env://PROXMOX_TOKEN"
    tls_fingerprint = "C0:6B:1E:55:9A:0D:7F:2C:43:88:E1:90:B2:5D:6A:34:F7:19:CE:05:8B:61:D4:2F:73:0C:A8:96:3E:51:BD:47"
    node            = "pve1"
  }
}
