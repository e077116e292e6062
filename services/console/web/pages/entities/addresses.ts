/** Where the pages of devices and users are. Ids may have any character. */

export const deviceAddress = (tenant: string, id: string) =>
  `/t/${tenant}/devices/${encodeURIComponent(id)}`
export const userAddress = (tenant: string, id: string) =>
  `/t/${tenant}/users/${encodeURIComponent(id)}`
