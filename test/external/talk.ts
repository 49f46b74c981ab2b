/** A workspace whose turns the stub agent does, and a client of it. */
import { fileURLToPath } from 'node:url';
import { Client, type Message, startServer, words } from '../appserver/harness.ts';

const stub = fileURLToPath(new URL('../../test/external/stub-agent.mjs', import.meta.url));

export const stubAgent = (flags = '', name = 'stub') => ({
  Agent: { Name: name, Command: [process.execPath, stub], Env: { STUB_FLAGS: flags } },
});

export class Talk {
  readonly client: Client;
  threadId = '';

  constructor(client: Client) {
    this.client = client;
  }

  static async begin(t: Parameters<typeof startServer>[0], flags = '', config: Readonly<Record<string, unknown>> = {}) {
    const { server, path, home, log } = await startServer(t, undefined, { config: { ...stubAgent(flags), ...config } });
    return { talk: await Talk.join(t, server), path, home, log, server };
  }

  /** Another client of a server, with a thread of its own. */
  static async join(t: Parameters<typeof startServer>[0], { webSocketUrl }: { readonly webSocketUrl: string }) {
    const talk = new Talk(await Client.ready(t, webSocketUrl));
    talk.threadId = (await talk.client.call('thread/start')).thread.id;
    return talk;
  }

  async start(...lines: string[]): Promise<string> {
    const input = words(lines.join('\n'));
    return (await this.client.call('turn/start', { threadId: this.threadId, input })).turn.id;
  }

  /** The turn when it has ended. */
  async end(turnId: string): Promise<Message> {
    const { params } = await this.client.until(
      ({ method, params }) =>
        /^turn\/(completed|failed|cancelled)$/.test(method) &&
        params.threadId === this.threadId &&
        params.turn.id === turnId,
      `${turnId} ends`,
    );
    return params.turn;
  }

  async say(...lines: string[]): Promise<Message> {
    return this.end(await this.start(...lines));
  }

  /** Answers the next question. */
  async decide(turnId: string, decision: string): Promise<Message> {
    const { params } = await this.client.until(
      ({ method, params }) => method === 'item/approval/request' && params.turnId === turnId,
      'a question',
    );
    await this.client.call('approval/respond', { requestId: params.requestId, decision });
    return params;
  }
}

export const items = (turn: Message, type: string) => turn.items.filter((item: Message) => item.type === type);
export const textOf = (turn: Message) =>
  items(turn, 'agentMessage')
    .map(({ text }: Message) => text)
    .join('|');
