/** The link to the page of a device or a user, for `Link`. */
export const entityLink = (kind: 'device' | 'user', tenant: string, id: string) =>
  kind === 'device'
    ? ({ to: '/t/$tenant/devices/$deviceId', params: { tenant, deviceId: id } } as const)
    : ({ to: '/t/$tenant/users/$userId', params: { tenant, userId: id } } as const)
