terraform {
  required_providers {
    bettercompute = {
      source = "better-compute/bettercompute"
    }
  }
}

# The block may be left out altogether: accounts are resources.
provider "bettercompute" {
  secrets = {
    hcloud = var.hcloud_token
  }
}

variable "hcloud_token" {
  type      = string
  sensitive = true
  ephemeral = true
}

resource "bettercompute_provider_account" "shop" {
  name = "shop"

  hetzner_cloud = {
    token = "secret://root/hcloud"
  }
}
