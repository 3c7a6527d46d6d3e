"""The handoff policy: allowed routes, number of hops, and size of an envelope."""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import Field, ValidationError

from fireswarm.contracts.base import Contract, explain_validation
from fireswarm.contracts.frontmatter import explain_yaml, load_yaml
from fireswarm.contracts.swarm.envelope import Envelope
from fireswarm.contracts.swarm.task import canonical_json
from fireswarm.errors import ConfigError, PolicyRefused

ANYONE = "*"


OPERATOR = "operator"


class HandoffPolicy(Contract):
    """Handoff rules as data; sizes in bytes, retention in days.

    ``answers`` lists whose tasks a role may answer by mail.
    """

    max_hops: int = Field(default=16, ge=1)
    max_envelope_bytes: int = Field(default=65_536, ge=1_024, le=900_000)
    retention_days: float = Field(default=7, gt=0)
    routes: dict[str, tuple[str, ...]] = Field(default_factory=lambda: {ANYONE: (ANYONE,)})
    answers: dict[str, tuple[str, ...]] = Field(default_factory=lambda: {OPERATOR: (ANYONE,)})

    @classmethod
    def load(cls, path: Path) -> HandoffPolicy:
        """Read a policy file. Raises ConfigError with the file, the key and the fault."""
        try:
            return cls.model_validate(load_yaml(path.read_text(encoding="utf-8")) or {})
        except FileNotFoundError as error:
            raise ConfigError(f"{path} is missing: `swarm init` writes one") from error
        except yaml.YAMLError as error:
            raise ConfigError(f"{path} is not YAML: {explain_yaml(error)}") from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"{path} is not YAML: {error}") from error
        except ValidationError as error:
            raise ConfigError(f"{path}: {explain_validation(error)}") from error

    def check(self, envelope: Envelope, sender_role: str) -> None:
        """Raise PolicyRefused unless *sender_role* may send this envelope to its role."""
        self.check_route(sender_role, envelope.task.assigned_to)
        if envelope.trace.step > self.max_hops:
            raise PolicyRefused(
                f"handoff {envelope.trace.step} of chain {envelope.trace.chain_id} exceeds max_hops = "
                f"{self.max_hops}: the roles pass work in a cycle, or the plan is too deep"
            )
        self.check_size(envelope)

    def route_fault(self, sender_role: str, to: str) -> str:
        """Return why *sender_role* may not hand work to the role *to*, or ""."""
        try:
            self.check_route(sender_role, to)
        except PolicyRefused as error:
            return str(error)
        return ""

    def check_route(self, sender_role: str, to: str) -> None:
        """Raise PolicyRefused unless *sender_role* may hand work to the role *to*."""
        allowed = self.routes.get(sender_role, self.routes.get(ANYONE, ()))
        if to not in allowed and ANYONE not in allowed:
            raise PolicyRefused(
                f"{sender_role} may not hand work to {to}: mailbox/policy.yaml allows it "
                f"{', '.join(allowed) or 'no role'}. "
                f"To allow it, add {to} under routes.{sender_role}."
            )

    def check_answer(self, sender_role: str, role: str, *, approves: bool = False) -> None:
        """Raise PolicyRefused unless *sender_role* may answer tasks of *role*; no role answers in a person's place.

        *approves* is True for a question that only a person may answer.
        """
        if approves and sender_role != OPERATOR:
            raise PolicyRefused(f"{sender_role} may not approve or advise for {role}: only the operator may")
        allowed = self.answers.get(sender_role, self.answers.get(ANYONE, ()))
        if role not in allowed and ANYONE not in allowed:
            raise PolicyRefused(
                f"{sender_role} may not answer tasks of {role}: mailbox/policy.yaml allows it "
                f"{', '.join(allowed) or 'no role'}. To allow it, add {role} under answers.{sender_role}."
            )

    def check_size(self, envelope: Envelope) -> None:
        """Raise PolicyRefused for an envelope above the size limit."""
        to = envelope.task.assigned_to
        size = len(canonical_json(envelope.model_dump(mode="json")).encode())
        if size > self.max_envelope_bytes:
            raise PolicyRefused(
                f"the envelope for {to} has {size:,} bytes, more than max_envelope_bytes = "
                f"{self.max_envelope_bytes:,}: put large content into an artifact's uri instead of its value"
            )
