-- Where an event's connection came from, as the edge measured it. The columns are empty where nothing
-- was measured: without network data, of an address that is not of the internet, and in rows from
-- before.

alter table telemetry
  -- In CIDR notation: /24 of IPv4, /48 of IPv6.
  add column if not exists connection_network String,
  -- The full address under the tenant's own key: 22 characters of base64url.
  add column if not exists connection_address_hash String,
  -- The full address, of tenants that keep it; empty for the others.
  add column if not exists connection_address String,
  -- ISO 3166-1 alpha-2.
  add column if not exists connection_country LowCardinality(String),
  -- Number of the network's operator; 0 when no database knows it.
  add column if not exists connection_asn UInt32,
  add column if not exists connection_organization LowCardinality(String),
  -- tor, vpn, hosting, proxy, relay, mobile: all that apply.
  add column if not exists connection_kinds Array(LowCardinality(String)),
  -- Of the city, in degrees; NaN when no database knows it.
  add column if not exists connection_latitude Float32 default nan,
  add column if not exists connection_longitude Float32 default nan;
