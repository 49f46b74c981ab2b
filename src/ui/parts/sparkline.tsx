import './sparkline.css';

/** Few numbers over time as small bars, newest last. `label` describes the picture in words. */
export function Sparkline({ values, label }: { readonly values: readonly number[]; readonly label: string }) {
  const most = Math.max(1, ...values);
  const width = values.length * step;
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label={label}>
      {values.map((value, index) => {
        const tall = value === 0 ? 1 : Math.max(2, (value / most) * height);
        return <rect key={index} x={index * step} y={height - tall} width={step - 1} height={tall} />;
      })}
    </svg>
  );
}

const step = 4;
const height = 20;
