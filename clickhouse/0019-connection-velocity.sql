-- Velocity of connections: where a device, a user and a network were seen, in the rows of `activity`.

-- A row has the same ten numbers as before. In places that its kind of key left free there are:
--
-- - of a device, where a user has the device: the first six bytes of the network's hash
--   and the two of its country;
-- - of a user, where a device has its session: the session; and where it has its clean signals, the
--   place: two bytes each of the country, of bits, and of latitude and longitude in 65,534ths of
--   their range. The bits are 1 for known coordinates, 2 for an address that tells no place (VPN,
--   relay, Tor, proxy, hosting), 4 for a mobile network;
-- - of a network, the user and the account where a device has them, and the device where a device
--   has its detected signals. An event with a connection has this one row more.
--
-- Whatever was not measured is 0, as in rows from before. The platform tells a device's row from
-- those of other keys: only it has one.
alter table activity_of_telemetry modify query
select
  tenant_id,
  reinterpretAsUInt64(SHA256(concat(key.1, ' ', key.2))) as key_hash,
  stream_offset,
  received_at,
  reinterpretAsUInt64(SHA256(event_id)) as event_hash,
  toFixedString(
    concat(
      toFixedString(
        multiIf(
          key.1 = 'device',
          concat(
            reinterpretAsFixedString(sipHash64(session_id)),
            reinterpretAsFixedString(user_hash),
            reinterpretAsFixedString(account_hash),
            reinterpretAsFixedString(sipHash64(lower(platform))),
            reinterpretAsFixedString(detected_bits),
            reinterpretAsFixedString(clean_bits),
            network_in_country,
            reinterpretAsFixedString(
              if(
                assertion_counter = 0,
                toUInt64(0),
                bitOr(
                  bitAnd(reinterpretAsUInt64(SHA256(attested_key)), 18446744069414584320),
                  toUInt64(assertion_counter)
                )
              )
            )
          ),
          key.1 = 'user',
          concat(
            reinterpretAsFixedString(
              if(has(placeholder_ids, 'session_id'), 0, sipHash64(session_id))
            ),
            repeat('\0', 32),
            place,
            reinterpretAsFixedString(device_hash)
          ),
          key.1 = 'network',
          concat(
            repeat('\0', 8),
            reinterpretAsFixedString(user_hash),
            reinterpretAsFixedString(account_hash),
            repeat('\0', 8),
            reinterpretAsFixedString(device_hash)
          ),
          concat(
            repeat('\0', 56),
            reinterpretAsFixedString(device_hash)
          )
        ),
        64
      ),
      reinterpretAsFixedString(event_hash),
      reinterpretAsFixedString(toUnixTimestamp64Milli(received_at))
    ),
    80
  ) as packed_facts
from (
  select
    tenant_id,
    device_id,
    session_id,
    user_id,
    account_id,
    event_id,
    stream_offset,
    received_at,
    platform,
    detected_bits,
    clean_bits,
    placeholder_ids,
    assertion_counter,
    attested_key,
    connection_network,
    if(has(placeholder_ids, 'device_id'), 0, sipHash64(device_id)) as device_hash,
    if(user_id = '' or has(placeholder_ids, 'user_id'), 0, sipHash64(user_id)) as user_hash,
    if(account_id = '' or has(placeholder_ids, 'account_id'), 0, sipHash64(account_id))
      as account_hash,
    toFixedString(substring(connection_country, 1, 2), 2) as country,
    isFinite(connection_latitude) and isFinite(connection_longitude) as has_coordinates,
    if(
      connection_network = '',
      toFixedString('', 8),
      toFixedString(
        concat(substring(reinterpretAsFixedString(sipHash64(connection_network)), 1, 6), country),
        8
      )
    ) as network_in_country,
    concat(
      country,
      reinterpretAsFixedString(
        toUInt16(
          has_coordinates
            + 2 * hasAny(connection_kinds, ['vpn', 'relay', 'tor', 'proxy', 'hosting'])
            + 4 * has(connection_kinds, 'mobile')
        )
      ),
      reinterpretAsFixedString(
        toUInt16(if(has_coordinates, round((connection_latitude + 90) * 65534 / 180), 0))
      ),
      reinterpretAsFixedString(
        toUInt16(if(has_coordinates, round((connection_longitude + 180) * 65534 / 360), 0))
      )
    ) as place
  from telemetry
)
array join arrayConcat(
  [('device', device_id), ('session', session_id)],
  if(connection_network = '', [], [('network', connection_network)]),
  arrayMap(
    id -> ('user', id),
    arrayDistinct(arrayFilter(id -> id != '', [user_id, account_id]))
  )
) as key;
