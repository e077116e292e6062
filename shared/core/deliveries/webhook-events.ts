/** The kinds of events that webhooks deliver: the value of `X-Service-Event`. */

/** An alert was raised. Every webhook gets it. */
export const riskAlert = 'risk.alert'
/** The disposition of an alert changed. Only webhooks that ask for it get it. */
export const alertUpdated = 'alert.updated'
/** An operator tests the webhook. It is sent once, and a failure does not count. */
export const webhookTest = 'webhook.test'

/** What a tenant can ask for. */
export const webhookEvents = [riskAlert, alertUpdated] as const
export type WebhookEvent = (typeof webhookEvents)[number]

export const deliveryEvents = [...webhookEvents, webhookTest] as const
export type DeliveryEvent = (typeof deliveryEvents)[number]
