import {
  to = bettercompute_provider_account.main

  identity = {
    uri = "hetzner-cloud://root/main?location=nbg1&token=env://HCLOUD_TOKEN"
  }
}
