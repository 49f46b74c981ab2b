import type * as v from 'valibot';
import { type HubEventData, type NotificationRequest, severities } from '../protocol/index.ts';

type Request = v.InferOutput<typeof NotificationRequest>;

function severityOf(value: string | null | undefined): string {
  const severity = value?.trim().toLowerCase() ?? '';
  return (severities as readonly string[]).includes(severity) ? severity : 'info';
}

/**
 * The notification as it is published (specification §2.5): severity normalised, a missing kind named.
 *
 * @param scope workspace of the token that was used, null for the Hub's own: a scoped sender speaks for its workspace only
 */
export function normaliseNotification(request: Request, scope: string | null): HubEventData<'notification.requested'> {
  return {
    workspacePath: scope ?? request.workspacePath ?? null,
    kind: request.kind?.trim() || 'notification',
    title: request.title,
    body: request.body ?? null,
    severity: severityOf(request.severity),
    source: request.source ?? null,
    actionUrl: request.actionUrl ?? null,
  };
}
