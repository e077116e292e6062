/** What people find an alert to be, and which actions raise one. */

export const dispositions = ['OPEN', 'REVIEWED', 'FALSE_POSITIVE', 'CONFIRMED'] as const
export type Disposition = (typeof dispositions)[number]

/** The disposition of a new alert. An operator can set any of the four later. */
export const initialDisposition: Disposition = 'OPEN'

/** The actions that raise an alert. */
export const decisions = ['REVIEW', 'BLOCK'] as const
export type Decision = (typeof decisions)[number]
