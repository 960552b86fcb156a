package collect_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestMigrating: of an address that two pods of a machine have, each is judged by itself, and the other keeps it.
func TestMigrating(t *testing.T) {
	cfg := account(t)
	node(t, "migrating-1", "10.0.0.11", corev1.ConditionTrue, time.Hour)
	node(t, "migrating-2", "10.0.0.12", corev1.ConditionTrue, time.Hour)
	to := func(podName, uid string) func(*v1.BCSNetIP) {
		return func(ip *v1.BCSNetIP) {
			ip.Labels = map[string]string{v1.MigratingLabel: "true"}
			ip.Status.SecondAttachment = &v1.SecondAttachment{
				PodName: podName, PodUID: uid, ContainerID: "c-" + podName, IfName: "eth0", Host: "10.0.0.12",
			}
		}
	}
	source := pod(t, "migrating-source", "migrating-1", nil)
	target := pod(t, "migrating-target", "migrating-2", nil)
	hold(t, "10.1.0.90", "10.0.0.11", source.Name, string(source.UID), to("migrating-lost", "u-1"))
	hold(t, "10.1.0.91", "10.0.0.11", "migrating-lost", "u-2", to(target.Name, string(target.UID)))
	hold(t, "10.1.0.92", "10.0.0.11", "migrating-lost", "u-3", to("migrating-lost-too", "u-4"))
	from := pod(t, "migrating-from", "migrating-1", nil)
	into := pod(t, "migrating-into", "migrating-2", nil)
	hold(t, "10.1.0.93", "10.0.0.11", from.Name, string(from.UID), to(into.Name, string(into.UID)))
	start(t, cfg, nil)
	ends := func(address, podName string) {
		t.Helper()
		controlplane.EventuallyWithin(t, patience, func() error {
			ip := stored(t, address)
			if ip.Status.SecondAttachment != nil || len(ip.Labels) > 0 {
				return fmt.Errorf("%s is of %s and %+v still", address, ip.Status.PodName, ip.Status.SecondAttachment)
			}
			return nil
		})
		wantHeld(t, address, podName)
		if h := stored(t, address).Status.History; len(h) != 1 || h[0].Verb != "collect" || h[0].Reason != "leak-pod-gone" {
			t.Errorf("the history of %s is %+v", address, h)
		}
	}
	ends("10.1.0.90", source.Name)
	ends("10.1.0.91", target.Name)
	controlplane.EventuallyWithin(t, patience, func() error {
		if ip := stored(t, "10.1.0.92"); ip.Status.Status != v1.IPAvailable || len(ip.Status.History) != 2 {
			return fmt.Errorf("it is %+v", ip.Status)
		}
		return nil
	})
	wantHeld(t, "10.1.0.93", from.Name)
	if s := stored(t, "10.1.0.93").Status.SecondAttachment; s == nil || s.PodName != into.Name {
		t.Errorf("10.1.0.93 is of %+v besides", s)
	}
	remove(t, from) // and now its time comes, while the machine is in the other
	ends("10.1.0.93", into.Name)
}

// TestMigratingBetweenDeadNodes: of two halves the one ends whose node has been dead for its grace period and whose pod
// is gone; one whose node died lately may run on.
func TestMigratingBetweenDeadNodes(t *testing.T) {
	controlplane.TakesLong(t)
	cfg := account(t)
	node(t, "migrating-up", "10.0.0.11", corev1.ConditionTrue, time.Hour)
	node(t, "migrating-dead", "10.0.0.12", corev1.ConditionFalse, 2*hostGrace)
	node(t, "migrating-dying", "10.0.0.13", corev1.ConditionFalse, time.Minute)
	half := func(name, host string) v1.SecondAttachment {
		return v1.SecondAttachment{
			PodName: name, PodUID: "u-" + name, ContainerID: "c-" + name, IfName: "eth0", Host: host,
		}
	}
	lives := func(name, host string) v1.SecondAttachment {
		h := half(name, host)
		h.PodUID = string(pod(t, name, "migrating-up", nil).UID)
		return h
	}
	both := func(address string, source, target v1.SecondAttachment) {
		t.Helper()
		hold(t, address, source.Host, source.PodName, source.PodUID, func(ip *v1.BCSNetIP) {
			ip.Labels, ip.Status.SecondAttachment = map[string]string{v1.MigratingLabel: "true"}, &target
			ip.Status.ContainerID = source.ContainerID
		})
	}
	const up, dead, dying = "10.0.0.11", "10.0.0.12", "10.0.0.13"
	both("10.1.0.100", lives("source-up", up), half("target-dead", dead))
	both("10.1.0.101", half("source-dead", dead), lives("target-up", up))
	both("10.1.0.102", lives("source-up-too", up), half("target-dying", dying))
	both("10.1.0.103", half("source-dead-too", dead), half("target-dying-too", dying))
	both("10.1.0.104", half("source-dead-both", dead), half("target-dead-both", dead))
	start(t, cfg, nil)
	alone := func(address, podName string) {
		t.Helper()
		controlplane.EventuallyWithin(t, patience, func() error {
			if ip := stored(t, address); ip.Status.SecondAttachment != nil || ip.Status.PodName != podName {
				return fmt.Errorf("%s is of %s and %+v still", address, ip.Status.PodName, ip.Status.SecondAttachment)
			}
			return nil
		})
		wantHeld(t, address, podName)
	}
	alone("10.1.0.100", "source-up")
	alone("10.1.0.101", "target-up")
	alone("10.1.0.103", "target-dying-too")
	controlplane.EventuallyWithin(t, patience, func() error {
		if ip := stored(t, "10.1.0.104"); ip.Status.Status != v1.IPAvailable || len(ip.Status.History) != 2 {
			return fmt.Errorf("it is %+v", ip.Status)
		}
		return nil
	})
	wantHeld(t, "10.1.0.102", "source-up-too")
	if s := stored(t, "10.1.0.102").Status.SecondAttachment; s == nil || s.PodName != "target-dying" {
		t.Errorf("10.1.0.102 is of %+v besides", s)
	}
}

// TestMigratingObjectIsRemovedByForce: the object of an address that two pods have, whose finalizer somebody took off,
// is written again for both.
func TestMigratingObjectIsRemovedByForce(t *testing.T) {
	controlplane.TakesLong(t)
	cfg := account(t)
	node(t, "removed-1", "10.0.0.11", corev1.ConditionTrue, time.Hour)
	node(t, "removed-2", "10.0.0.12", corev1.ConditionTrue, time.Hour)
	source := pod(t, "removed-source", "removed-1", nil)
	target := pod(t, "removed-target", "removed-2", nil)
	start(t, cfg, nil)
	hold(t, "10.1.0.110", "10.0.0.11", source.Name, string(source.UID), func(ip *v1.BCSNetIP) {
		ip.Labels = map[string]string{v1.MigratingLabel: "true"}
		ip.Status.SecondAttachment = &v1.SecondAttachment{
			PodName: target.Name, PodUID: string(target.UID), ContainerID: "c-target", IfName: "eth0", Host: "10.0.0.12",
		}
	})
	hold(t, "10.1.0.111", "10.0.0.11", "removed-later", "u-1", nil)
	wantCollected(t, "10.1.0.111", "leak-pod-gone") // the controller has seen the other one by then
	ip := stored(t, "10.1.0.110")
	before := ip.UID
	ip.Finalizers = nil
	if err := errors.Join(admin.Update(t.Context(), ip), admin.Delete(t.Context(), ip)); err != nil {
		t.Fatal(err)
	}
	controlplane.EventuallyWithin(t, patience, func() error {
		var now v1.BCSNetIP
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(ip), &now); err != nil {
			return err
		}
		if s := now.Status.SecondAttachment; now.UID == before || s == nil || s.PodName != target.Name ||
			len(now.Finalizers) != 1 || now.Labels[v1.MigratingLabel] == "" {
			return fmt.Errorf("it is %+v, %v, %v", now.Status, now.Finalizers, now.Labels)
		}
		return nil
	})
	wantHeld(t, "10.1.0.110", source.Name)
}
