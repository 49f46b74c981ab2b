import * as v from 'valibot';
import { type HubEventData, NotificationRequest, severities } from '../protocol/index.ts';
import { hubError } from './errors.ts';

type Request = v.InferOutput<typeof NotificationRequest>;

function invalid(message: string, field: string | null): never {
  throw hubError('invalidNotification', message, { field });
}

/**
 * Schemes that never open an application of ours: web and network addresses, scripts, local files, browser pages, and
 * handlers of the operating system that take commands.
 */
const foreignSchemes = new Set(
  [
    'http https ws wss ftp ftps sftp file javascript vbscript livescript data blob filesystem about view-source',
    'chrome chrome-extension moz-extension edge opera resource jar feed mailto tel sms callto news nntp irc',
    'ssh telnet smb nfs afp vnc rdp ldap ldaps gopher dict magnet shell search intent android-app mk res hcp help',
  ]
    .join(' ')
    .split(' '),
);

/** True for an URL of a custom application scheme (specification §2.5). A single letter is a Windows drive. */
function isApplicationUrl(text: string): boolean {
  if (/\p{Cc}/u.test(text) || text !== text.trim() || !URL.canParse(text)) return false;
  const scheme = new URL(text).protocol.slice(0, -1);
  return scheme.length > 1 && !scheme.startsWith('ms-') && !scheme.endsWith('-ms') && !foreignSchemes.has(scheme);
}

/**
 * Checks the body of `POST /v1/notifications/request`. Messages never quote a value.
 *
 * @throws HttpError 400 `invalidNotification`
 */
export function parseNotification(body: unknown): Request {
  const parsed = v.safeParse(NotificationRequest, body);
  if (!parsed.success) {
    const [issue] = parsed.issues;
    const field = v.getDotPath(issue);
    // The message of a failed type check quotes the received value.
    const isTypeCheck = issue.kind === 'schema';
    return invalid(isTypeCheck ? `Notification ${field ?? 'body'} is invalid.` : issue.message, field);
  }
  const { actionUrl } = parsed.output;
  if (typeof actionUrl === 'string' && !isApplicationUrl(actionUrl)) {
    return invalid('Notification actionUrl must be a URL of an application scheme.', 'actionUrl');
  }
  return parsed.output;
}

/** Severities of the specification by the words of logs and of other notifiers. */
const severitySynonyms: Readonly<Record<string, (typeof severities)[number]>> = Object.assign(Object.create(null), {
  ...{ debug: 'info', notice: 'info', information: 'info', ok: 'success', done: 'success' },
  ...{ warn: 'warning', err: 'error', critical: 'error', crit: 'error', fatal: 'error' },
  ...{ alert: 'error', emergency: 'error', emerg: 'error', failure: 'error' },
});

function severityOf(value: string | null | undefined): string {
  const word = value?.trim().toLowerCase() ?? '';
  const severity = severitySynonyms[word] ?? word;
  return (severities as readonly string[]).includes(severity) ? severity : 'info';
}

/**
 * Returns the published form of a notification (specification §2.5): severity normalised, a missing kind filled in.
 *
 * @param workspacePath canonical path of the workspace; null without one
 */
export function normaliseNotification(
  request: Request,
  workspacePath: string | null,
): HubEventData<'notification.requested'> {
  return {
    workspacePath,
    kind: request.kind?.trim() || 'notification',
    title: request.title,
    body: request.body ?? null,
    severity: severityOf(request.severity),
    source: request.source ?? null,
    actionUrl: request.actionUrl ?? null,
  };
}
