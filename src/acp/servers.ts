import * as v from 'valibot';
import { type AppServerClient, AppServerConnectionError } from '../client/index.ts';
import type { ApprovalPolicy } from '../protocol/index.ts';

/** The agent server of a workspace. */
export interface Link {
  readonly client: AppServerClient;
  /** Defaults of threads without settings of their own. */
  readonly approvalPolicy: ApprovalPolicy;
}

export interface ConnectRequest {
  /** Canonical. */
  readonly workspacePath: string;
  /** Answers the requests of the server. */
  readonly onRequest: (method: string, params: Readonly<Record<string, unknown>>) => Promise<unknown>;
  readonly signal: AbortSignal;
}

/** Finds or starts the agent server of a workspace and connects to it. */
export type Connect = (request: ConnectRequest) => Promise<Link>;

export interface ServersOptions {
  readonly connect: Connect;
  readonly onRequest: ConnectRequest['onRequest'];
  readonly onNotification: (method: string, params: Readonly<Record<string, unknown>>) => void;
  /** The connection to the server of a workspace is over. */
  readonly onLost: (link: Link) => void;
}

/** One connection per workspace, made when it is first needed, and again when it has broken. */
export class Servers {
  readonly #options: ServersOptions;
  readonly #links = new Map<string, Promise<Link>>();
  readonly #closing = new AbortController();

  constructor(options: ServersOptions) {
    this.#options = options;
  }

  /** Workspaces that were connected to. */
  get workspacePaths(): readonly string[] {
    return [...this.#links.keys()];
  }

  /** @throws the errors of `connect` */
  of(workspacePath: string): Promise<Link> {
    const known = this.#links.get(workspacePath);
    if (known) return known;
    const link = this.#connect(workspacePath);
    this.#links.set(workspacePath, link);
    // The caller gets the reason; the next caller tries again.
    link.catch(() => this.#links.delete(workspacePath));
    return link;
  }

  /** Closes every connection, and those that are being made. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('The editor has gone.'));
    const links = await Promise.allSettled(this.#links.values());
    for (const link of links) if (link.status === 'fulfilled') link.value.client.close();
  }

  async #connect(workspacePath: string): Promise<Link> {
    const { connect, onRequest, onNotification, onLost } = this.#options;
    const link = await connect({ workspacePath, onRequest, signal: this.#closing.signal });
    link.client.onNotification(({ method, params }) => onNotification(method, params));
    void link.client.closed.then(() => {
      this.#links.delete(workspacePath);
      onLost(link);
    });
    return link;
  }
}

/** Result of a request, read by its schema. @throws JsonRpcError, AppServerConnectionError */
export async function ask<S extends v.GenericSchema>(
  { client }: Link,
  method: string,
  params: Readonly<Record<string, unknown>>,
  schema: S,
): Promise<v.InferOutput<S>> {
  const answer = v.safeParse(schema, await client.request(method, params));
  if (answer.success) return answer.output;
  throw new AppServerConnectionError(
    `The agent server sent an invalid answer to ${method}. Restart it: oratorio restart`,
  );
}
