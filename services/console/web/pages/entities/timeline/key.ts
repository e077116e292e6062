/** The key of all timelines of a tenant, for a refresh after a change. */
export const timelineKey = (tenant: string) => ['timeline', tenant]
