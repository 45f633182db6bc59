# The id is the pool's uri: the account's, with /POOL behind the account's name, and the limits, if any, behind the question mark.
terraform import bettercompute_pool.web 'hetzner-cloud://root/main/web?pool.limits.instances=10&pool.limits.price_per_hour=0.25&token=env://HCLOUD_TOKEN'
