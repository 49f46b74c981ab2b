import type { Certificates, Repository } from '../files/index.ts';

/** The gateway that is wanted. */
export interface WebhookAnswers {
  readonly publicHost: string;
  readonly acmeEmail: string | null;
  readonly certificates: Certificates;
  /** Given by the user; null: the one there is, or a new one. */
  readonly secret: string | null;
}

/** Everything `server init` has to know. Made by the command line of flags, prompts and files. */
export interface InitAnswers {
  /** Absolute. */
  readonly directory: string;
  readonly repositories: readonly { readonly repository: Repository; readonly cloneUrl: string | null }[];
  readonly autoReview: boolean;
  readonly writes: boolean;
  readonly model: { readonly endPoint: string; readonly name: string; readonly apiKey: string };
  readonly github: {
    readonly appId: string;
    /** Text of the key file; null: it lies, or will lie, where `privateKeyPath` says. */
    readonly privateKey: string | null;
    /** Path of the private key inside of the containers. */
    readonly privateKeyPath: string;
    readonly installations: readonly { readonly owner: string; readonly installationId: number }[];
    /** Null: github.com. */
    readonly endpoint: string | null;
  };
  readonly webhook: WebhookAnswers | null;
  readonly images: { readonly stack: string | null; readonly gateway: string | null };
  readonly build: { readonly context: string; readonly base: string | null } | null;
  /** Loopback port of the backend; null: the first that is free. */
  readonly port: number | null;
  readonly starts: boolean;
  readonly isOffline: boolean;
}
