/** A plan lists every step of a command before the first one runs: data, made without access to the disk or the engine. */

export type ServiceName = 'agent' | 'backend' | 'webhook-gateway';
export type StackCommand = 'init' | 'add-repo' | 'webhook enable' | 'webhook disable' | 'restart' | 'upgrade';

/** The stages that are shown while a plan is carried out. Those of the ingress are states of its machine. */
export type PhaseName =
  | 'validating'
  | 'secret'
  | 'ports'
  | 'checkouts'
  | 'files'
  | 'images'
  | 'backup'
  | 'validate'
  | 'start'
  | 'recreate'
  | 'health'
  | 'stopping'
  | 'removing';

/** One step. Each can be repeated: results that exist stay. Paths are relative to the stack. */
export type Step =
  | { readonly do: 'makeDirectory'; readonly path: string; readonly mode: number }
  /** A file of exactly this content. `isSecret`: neither shown nor put into the journal. */
  | {
      readonly do: 'writeFile';
      readonly path: string;
      readonly mode: number;
      readonly content: string;
      readonly isSecret: boolean;
      /** `ours`: carries our marker; one that was edited by hand or is not ours is never overwritten. `theirs`: belongs to the user and is only changed where the plan says so. */
      readonly owner: 'ours' | 'theirs';
    }
  /** Only of a file with our marker. */
  | { readonly do: 'removeFile'; readonly path: string }
  | {
      readonly do: 'clone';
      /** `owner/name`. */
      readonly repository: string;
      readonly url: string;
      readonly path: string;
    }
  /** Everything below belongs to the user of the containers from now on. */
  | { readonly do: 'giveTo'; readonly path: string; readonly uid: number; readonly gid: number }
  | {
      readonly do: 'checkPorts';
      readonly ports: readonly number[];
      readonly host: '127.0.0.1' | '*';
      readonly service: ServiceName;
    }
  /** Images of these services are on the machine afterwards; present images are not pulled again. */
  | { readonly do: 'pullImages'; readonly services: readonly ServiceName[] }
  /** The composition of all files that are there, merged, is valid. */
  | { readonly do: 'checkComposition' }
  | { readonly do: 'checkGateway' }
  /** The database and tokens of the backend, into the backup of this change. Undone: put back. */
  | { readonly do: 'saveState' }
  | { readonly do: 'start'; readonly services: readonly ServiceName[]; readonly recreate: boolean }
  | { readonly do: 'awaitHealthy'; readonly services: readonly ServiceName[] }
  | { readonly do: 'removeServices'; readonly services: readonly ServiceName[] };

export interface Phase {
  readonly name: PhaseName;
  /** Title for people while the phase runs: `Checking ports 80 and 443`. */
  readonly title: string;
  readonly steps: readonly Step[];
}

export interface Plan {
  readonly command: StackCommand;
  readonly directory: string;
  readonly phases: readonly Phase[];
  /**
   * After a failure: `undo` all steps, or `keep` the finished ones, so that the same command resumes
   * there.
   */
  readonly onFailure: 'undo' | 'keep';
  /** Created secrets to show once, after the plan has succeeded, by their name in `.env`. */
  readonly reveals: readonly string[];
  /** Notes to the operator, before it is carried out. */
  readonly notes: readonly string[];
}
