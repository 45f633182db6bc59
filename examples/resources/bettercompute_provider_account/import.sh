# The id is the account's uri: hetzner-cloud://TENANT/NAME?CONFIGURATION. Quote it, because of the ? and the &.
terraform import bettercompute_provider_account.main 'hetzner-cloud://root/main?location=nbg1&token=env://HCLOUD_TOKEN'
