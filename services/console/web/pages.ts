/**
 * The pages: address, name and file of each. A new page is a file in `pages/` that exports `Page`,
 * and one entry here; its code is loaded when it is opened.
 */
import { lazy } from 'react'
import type { PageEntry } from './shell/page-list.ts'

export const pages = [
  {
    path: '/t/$tenant/overview',
    load: () => import('./pages/overview/page.tsx'),
    nav: { name: 'Overview', icon: 'overview' },
  },
  {
    path: '/t/$tenant/cases',
    load: () => import('./pages/cases/page.tsx'),
    nav: { name: 'Cases', icon: 'cases' },
  },
  { path: '/t/$tenant/cases/$caseId', load: () => import('./pages/case/page.tsx') },
  {
    path: '/t/$tenant/alerts',
    load: () => import('./pages/alerts/page.tsx'),
    nav: { name: 'Alerts', icon: 'alerts' },
  },
  {
    path: '/t/$tenant/alerts/$alertId',
    load: () => import('./pages/alert/page.tsx'),
  },
  { path: '/t/$tenant/bulk-changes', load: () => import('./pages/bulk-changes/page.tsx') },
  {
    path: '/t/$tenant/events',
    load: () => import('./pages/events/page.tsx'),
    nav: { name: 'Events', icon: 'events' },
  },
  {
    path: '/t/$tenant/events/$eventId',
    load: () => import('./pages/event/page.tsx'),
  },
  { path: '/t/$tenant/devices/$deviceId', load: () => import('./pages/device/page.tsx') },
  { path: '/t/$tenant/phones/$phoneId', load: () => import('./pages/phone/page.tsx') },
  { path: '/t/$tenant/users/$userId', load: () => import('./pages/user/page.tsx') },
  {
    path: '/t/$tenant/policies',
    load: () => import('./pages/policies/page.tsx'),
    nav: { name: 'Policies', icon: 'policies' },
  },
  {
    path: '/t/$tenant/signals',
    load: () => import('./pages/signals/page.tsx'),
    nav: {
      name: 'Signals',
      icon: 'signals',
      badge: lazy(() =>
        import('./pages/signals/badge.tsx').then((file) => ({ default: file.SpikeCount })),
      ),
    },
  },
  {
    path: '/t/$tenant/lists',
    load: () => import('./pages/lists/page.tsx'),
    nav: { name: 'Lists', icon: 'lists' },
  },
  {
    path: '/t/$tenant/fleet',
    load: () => import('./pages/fleet/page.tsx'),
    nav: { name: 'Fleet', icon: 'fleet' },
  },
  {
    path: '/t/$tenant/explore',
    load: () => import('./pages/explore/page.tsx'),
    nav: { name: 'Explore', icon: 'explore' },
    role: 'analyst',
  },
  {
    path: '/t/$tenant/reconciliation',
    load: () => import('./pages/reconciliation.tsx'),
    nav: { name: 'Reconciliation', icon: 'reconciliation' },
  },
  {
    path: '/t/$tenant/webhooks',
    load: () => import('./pages/webhooks/page.tsx'),
    nav: { name: 'Webhooks', icon: 'webhooks' },
  },
  {
    path: '/t/$tenant/proposals',
    load: () => import('./pages/proposals/page.tsx'),
    nav: {
      name: 'Proposals',
      icon: 'check',
      badge: lazy(() =>
        import('./pages/proposals/badge.tsx').then((file) => ({ default: file.ProposalCount })),
      ),
    },
  },
  { path: '/account', load: () => import('./pages/account/page.tsx') },
  {
    path: '/manage/tenants',
    load: () => import('./pages/tenants/page.tsx'),
    nav: { name: 'Tenants', of: 'admin' },
  },
  {
    path: '/manage/integrations',
    load: () => import('./pages/integrations.tsx'),
    nav: { name: 'Integrations', of: 'admin' },
  },
  { path: '/manage/integrations/$tenant', load: () => import('./pages/integration/page.tsx') },
  {
    path: '/manage/integrations/$tenant/requests',
    load: () => import('./pages/integration/request-log.tsx'),
  },
  {
    path: '/manage/integrations/$tenant/signature',
    load: () => import('./pages/integration/signature-debugger.tsx'),
    role: 'engineer',
  },
  {
    path: '/manage/integrations/$tenant/attestation',
    load: () => import('./pages/integration/attestation-check.tsx'),
    role: 'engineer',
  },
  {
    path: '/manage/labels',
    load: () => import('./pages/labels/page.tsx'),
    nav: { name: 'Labels', of: 'admin' },
  },
  {
    path: '/manage/analysts',
    load: () => import('./pages/analysts/page.tsx'),
    nav: { name: 'SQL accounts', of: 'admin' },
    role: 'admin',
  },
  {
    path: '/manage/operators',
    load: () => import('./pages/operators/page.tsx'),
    nav: { name: 'Operators', of: 'admin' },
    role: 'admin',
    allTenants: true,
  },
  {
    path: '/manage/audit',
    load: () => import('./pages/audit/page.tsx'),
    nav: { name: 'Audit', of: 'admin' },
  },
  {
    path: '/manage/retention',
    load: () => import('./pages/retention.tsx'),
    nav: { name: 'Retention', of: 'admin' },
  },
  {
    path: '/manage/erasure',
    load: () => import('./pages/erasure/page.tsx'),
    nav: { name: 'Erasure', of: 'admin' },
    role: 'admin',
  },
  {
    path: '/manage/recovery',
    load: () => import('./pages/recovery.tsx'),
    nav: { name: 'Recovery', of: 'admin' },
    role: 'admin',
    allTenants: true,
  },
  { path: '/help', load: () => import('./pages/help/page.tsx') },
] as const satisfies readonly PageEntry[]
