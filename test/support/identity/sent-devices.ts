/** Phones as bodies tell of them once an edge has put hashes in the place of identifiers. */

/** The `device` of a body: phones of one number are one phone. */
export const toSentDevice = (phone: number) => ({
  identifiers: { keychain_id: `keychain-${phone}`.padEnd(22, '-') },
  brand: 'Maker',
  model: `Phone ${phone}`,
  os_version: '16',
  build: 'B1',
  storage_bytes: 128e9,
  memory_bytes: 8e9,
  screen: '1080x2400',
  locale: 'de-DE',
  time_zone: 'Europe/Berlin',
  carrier: 'Example',
})
