import type { InspectionEvent } from 'xstate';

/** One value of a context on its way to the page. */
export interface InspectedValue {
  /** `user.password`; positions of lists are numbers: `users.0.password`. */
  readonly path: string;
  /** Last segment of the path. */
  readonly key: string;
  readonly value: unknown;
}

export interface InspectorOptions {
  /**
   * Returns the value that the page shows in place of `value`. Default: texts under names such as `password`, `token` or `apiKey`
   * are masked. A value for which the function throws is masked.
   */
  readonly mask?: (inspected: InspectedValue) => unknown;
  /** Called for a fault of the inspector. The program is not affected by it. Default: faults are ignored. */
  readonly onFault?: (error: unknown) => void;
}

export interface NodeInspectorOptions extends InspectorOptions {
  /** Port on 127.0.0.1; default: any free one. */
  readonly port?: number;
}

export interface BrowserInspectorOptions extends InspectorOptions {
  /** Address of the directory `page` of this package on the program's own origin. Default: `/inspector/`. */
  readonly page?: string;
}

export interface Inspector {
  /** Pass it as `inspect` of `createActor`, for any number of actors. */
  readonly inspect: (event: InspectionEvent) => void;
  /** Address of the page. It holds a secret of this program: open it, and publish it nowhere. */
  readonly url: Promise<string>;
  /** Ends all recording, and the connection to the page. */
  close(): Promise<void>;
}
