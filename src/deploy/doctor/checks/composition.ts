import { checkComposition, checkGateway } from '../../engine/index.ts';
import { DeployError } from '../../errors.ts';
import { ownershipOf } from '../../files/index.ts';
import type { DoctorContext } from '../context.ts';
import { fail, ok } from '../finding.ts';
import type { Finding } from '../types.ts';

/** Checks that the files of the composition are valid together. */
export const composition = (context: DoctorContext, signal: AbortSignal): Promise<Finding> =>
  accepted(checkComposition(context.engine(), context.layout, { signal }), 'Correct .env or the file that is named.');

/** The gateway takes its file, by the program and the version it runs. */
export const gatewayFile = (context: DoctorContext, signal: AbortSignal): Promise<Finding> =>
  accepted(checkGateway(context.engine(), context.layout, { signal }), gatewayHint(context));

/** A file that was changed by hand is not written again before it is moved away. */
function gatewayHint({ texts: { caddyfile }, layout, gatewayHost }: DoctorContext): string {
  const host = gatewayHost?.ok ? gatewayHost.host.display : 'HOST';
  const enable = `oratorio server webhook enable --public-host ${host}`;
  const isOurs = typeof caddyfile !== 'string' || ownershipOf(caddyfile) === 'ours';
  return isOurs ? enable : `Undo your change, or: mv ${layout.caddyfile} ${layout.caddyfile}.mine && ${enable}`;
}

const accepted = (checked: Promise<void>, hint: string): Promise<Finding> =>
  checked.then(
    () => ok('It is valid.'),
    (error: unknown) => {
      if (!(error instanceof DeployError)) throw error;
      return fail(error.message, error.hint ?? hint);
    },
  );
