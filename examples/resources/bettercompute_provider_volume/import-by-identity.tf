import {
  to = bettercompute_provider_volume.data

  identity = {
    uri = "hetzner-cloud://root/main/web/volumes/data?token=env://HCLOUD_TOKEN"
  }
}
