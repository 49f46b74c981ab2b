/** Words of a machine: descriptions of its guards and actions, for people. */
export interface MachineWords {
  /** By name of the guard, a clause that completes “if …”: `no restart is wanted`. */
  readonly guards: Readonly<Record<string, string>>;
  /** By name of the action, an imperative: `note why it is stopped`. */
  readonly actions: Readonly<Record<string, string>>;
}
