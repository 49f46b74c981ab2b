import type { InspectionEvent } from 'xstate';

/** Value of a context that is about to be sent to the page. */
export interface InspectedValue {
  /** Path such as `user.password`; list entries have indexes: `users.0.password`. */
  readonly path: string;
  /** Last segment of the path. */
  readonly key: string;
  readonly value: unknown;
}

export interface InspectorOptions {
  /**
   * Returns the value that the page shows in place of `value`. If the function throws, the value is masked. Default: masks texts
   * under names such as `password`, `token` or `apiKey`, also in lists and objects.
   */
  readonly mask?: (inspected: InspectedValue) => unknown;
  /** Called for an internal error of the inspector, which never affects the program. Default: ignores errors. */
  readonly onFault?: (error: unknown) => void;
}

export interface NodeInspectorOptions extends InspectorOptions {
  /** Port on 127.0.0.1; default: any free port. */
  readonly port?: number;
}

export interface BrowserInspectorOptions extends InspectorOptions {
  /** Address of the directory `page` of this package on the program's own origin. Default: `/inspector/`. */
  readonly page?: string;
}

export interface Inspector {
  /** Value for the option `inspect` of `createActor`, for any number of actors. */
  readonly inspect: (event: InspectionEvent) => void;
  /** Address of the page. Contains a secret of this program: do not publish it. */
  readonly url: Promise<string>;
  /** Ends the recording, and closes the connection to the page. */
  close(): Promise<void>;
}
