# The id is the account's uri: hetzner-cloud://TENANT/NAME?CONFIGURATION. Quote it: it holds a ? and may hold a &.
terraform import bettercompute_provider_account.main 'hetzner-cloud://root/main?location=nbg1&token=env://HCLOUD_TOKEN'
