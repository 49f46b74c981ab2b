/**
 * A tab without a token, opened by a link or a notification, gets the token of another tab of this origin: no address has to
 * carry it. The other tab answers only while its server proves itself, so that another program on the port gets nothing.
 */
type Message =
  | { readonly type: 'ask'; readonly tab: string }
  | { readonly type: 'token'; readonly to: string; readonly token: string };

export interface HandoverOptions {
  /** Channel name, shared by all tabs that one token opens. */
  readonly name: string;
  /** Resolves with the token of this tab once the server has proved itself; null without one. */
  readonly proven: () => Promise<string | null>;
  /** Whether this tab has no token. */
  readonly lacksToken: () => boolean;
  readonly onToken: (token: string) => void;
  /** Aborts when the page is closed. */
  readonly ended: AbortSignal;
}

/** Answers the tabs that ask. Returns a function that asks for this one. */
export function handOver({ name, proven, lacksToken, onToken, ended }: HandoverOptions): () => void {
  if (typeof BroadcastChannel === 'undefined') return () => {};
  const channel = new BroadcastChannel(`oratorio:token:${name}`);
  ended.addEventListener('abort', () => channel.close());
  const tab = `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;
  const answer = async (to: string) => {
    // A tab whose server does not prove itself stays silent; another one may answer.
    const token = await proven().catch(() => null);
    if (token !== null && !ended.aborted) channel.postMessage({ type: 'token', to, token } satisfies Message);
  };
  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if (data.type === 'ask') {
      if (!lacksToken()) void answer(data.tab);
    } else if (data.to === tab && lacksToken()) onToken(data.token);
  };
  return () => ended.aborted || channel.postMessage({ type: 'ask', tab } satisfies Message);
}
