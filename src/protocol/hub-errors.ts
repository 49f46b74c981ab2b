/** Every error code of the Hub with its status and meaning (specification §7.1; the rest are design §4). The one table. */
export const hubErrors = {
  unauthorized: { status: 401, when: 'The bearer token is missing or wrong.' },
  workspaceNotFound: {
    status: 404,
    when: '400: the path is missing, blank, relative or not a string. 404: it does not exist or is not a workspace.',
  },
  workspaceLocked: {
    status: 409,
    when: 'Another live process owns the workspace lock, or the lock file cannot be used.',
  },
  appServerStartFailed: { status: 500, when: 'The agent server (or the sidecar it needs) failed at startup.' },
  appServerUnhealthy: { status: 500, when: 'The agent server failed readiness or health checks.' },
  placeUnavailable: {
    status: 503,
    when: 'The place of the agent server, such as a container engine, does not answer.',
  },
  imageMissing: {
    status: 409,
    when: 'The container engine does not have the image. Oratorio never pulls an image: pull it, then start again.',
  },
  placeRefused: {
    status: 409,
    when: 'The settings forbid the place: a rootful engine under a Hub that runs as root, or a forbidden mount.',
  },
  portUnavailable: { status: 500, when: 'No local port could be allocated.' },
  invalidProxySidecar: { status: 400, when: 'The apiProxy request is invalid.' },
  invalidNotification: { status: 400, when: 'The notification request is invalid.' },
  invalidRequest: { status: 400, when: 'The body is not JSON, or a field has the wrong type.' },
  invalidConfig: { status: 500, when: 'A configuration file of the user or the workspace cannot be used.' },
  hostNotAllowed: { status: 403, when: 'The Host header names a host this server does not serve.' },
  originNotAllowed: { status: 403, when: 'The request comes from a page of another origin.' },
  notFound: { status: 404, when: 'There is no such route, or no such thing.' },
  methodNotAllowed: { status: 405, when: 'The route exists for other methods, named in Allow.' },
  requestTimeout: { status: 408, when: 'The body did not arrive in time.' },
  payloadTooLarge: { status: 413, when: 'The body is larger than the limit.' },
  headersTooLarge: { status: 431, when: 'Request line and headers are larger than 16 KiB.' },
  hubInternalError: { status: 500, when: 'A bug; the id in details is in the log of the Hub.' },
  hubStopping: { status: 503, when: 'The Hub is shutting down.' },
  scopeMissing: {
    status: 403,
    when: 'The scoped token or the page token lacks the right, or would decide about its own workspace.',
  },
  tokenRevoked: { status: 403, when: 'The scoped token was revoked; `oratorio tokens` lists those that are valid.' },
  trustRefused: {
    status: 409,
    when: 'The settings of the workspace changed while the trust question was open, or trust cannot be recorded.',
  },
  alreadyDecided: {
    status: 409,
    when: 'Another answer was first; details are `{decision, decidedBy}`.',
  },
  workspaceUnavailable: {
    status: 503,
    when: 'The agent server of a workspace page does not serve now; details name its state, Retry-After when to ask again.',
  },
  badGateway: {
    status: 502,
    when: 'The agent server of a workspace page broke off, or gave an answer that is not passed on.',
  },
  moveRefused: {
    status: 409,
    when: 'The conversation cannot move now; the message has the reason and the next step. It stays at its place.',
  },
  hostUnknown: { status: 404, when: 'No host has this name; `oratorio hosts` lists the hosts.' },
  hostUnreachable: {
    status: 503,
    when: 'The host is not connected. The request was not sent and is not stored for later; details name the state and reason.',
  },
  deadlineExceeded: { status: 503, when: 'The request was not finished in time; the work that it started continues.' },
} as const satisfies Record<string, { status: number; when: string }>;

export type HubErrorCode = keyof typeof hubErrors;

/** Message of `notFound` for a route that the Hub does not have: an earlier version lacks later routes. */
export const missingRoute = 'There is no such route.';
