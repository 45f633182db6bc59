import {
  to = bettercompute_provider_account.main
  id = "hetzner-cloud://root/main?location=nbg1&token=env://HCLOUD_TOKEN"
}
