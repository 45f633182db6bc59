import {
  to = bettercompute_pool.web

  identity = {
    uri = "hetzner-cloud://root/main/web?pool.limits.instances=10&pool.limits.price_per_hour=0.25&token=env://HCLOUD_TOKEN"
  }
}
