# The id is the pool's uri: the account's, with the pool's name behind the account's and the limits among the configuration.
terraform import bettercompute_pool.web 'hetzner-cloud://root/main/web?pool.limits.instances=10&pool.limits.price_per_hour=0.25&token=env://HCLOUD_TOKEN'
